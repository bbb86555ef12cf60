// AcceleratorCounters: how busy the accelerators are that the target uses.
//
// A device is the target's when the vendor's library lists one of its processes as computing on it;
// where the library lists none (another process namespace), when a process has the device open. In:
// the open files of the target, and DeviceReader; out: series of the host with the device as label,
// and model::Accelerator as facts. Nothing is loaded or started before the target has a device
// open. Threads: one. Failures: one QualityNote when the devices cannot be read.
#pragma once

#include <map>
#include <set>
#include <string>

#include "capture/counters/counter_group.h"
#include "capture/counters/socket_owners.h"
#include "capture/devices/device_reader.h"
#include "model/device/accelerator.h"

namespace assay::capture {

class AcceleratorCounters : public CounterGroup {
 public:
  struct Parts {
    const SocketOwners& owners;
    SeriesBook& book;
    Clock clock;
    DeviceReader::Options reader;
    bool always = false;  // of tests: also without a device of the target's
  };
  explicit AcceleratorCounters(Parts parts) : parts_(std::move(parts)), reader_(parts_.reader) {}
  const char* name() const override { return "accelerators"; }
  void poll(const LiveTasks& tasks) override;

 private:
  void write(const DeviceReading& reading, TimeNs time, const LiveTasks& tasks);
  void put(const char* name, const char* unit, const std::string& device, TimeNs time,
           const std::optional<int64_t>& value);
  void write_facts(const model::Accelerator& accelerator);
  void note_problem();

  Parts parts_;
  DeviceReader reader_;
  std::map<std::string, Track> tracks_;              // by name and device
  std::map<std::string, model::Accelerator> known_;  // by device, as last written
  bool noted_ = false;
};

}  // namespace assay::capture
