// serve(): the reader process: reads the files of strangers, with no right to do anything else.
//
// Gives up every privilege before it reads the first byte (os::confine), then answers questions on
// the channel until it closes: names of addresses, and unwind tables. A hostile file can at worst
// end this process, which Assay notices, or take it over and make it give wrong names and tables
// for the modules that this reader is asked about. It cannot reach other readers, files or
// processes.
#pragma once

namespace assay::reader {

// The word on the command line that makes a program the reader.
inline constexpr const char* kReaderWord = "__reader";

// Never returns before the channel closes; the result is the exit status.
int serve(int channel_descriptor);

}  // namespace assay::reader
