// BrowserPage: hands an address with a secret in it to a browser without showing it to others.
//
// The arguments of a process can be read by every user of the machine. So the browser gets the name
// of a page of our own, which its owner alone can read and which leads to the address. The page
// vanishes with this object. Threads: one. Failures: a browser that cannot be started is an Error.
#pragma once

#include <string>

#include "base/result.h"

namespace assay::cli {

class BrowserPage {
 public:
  BrowserPage() = default;
  ~BrowserPage();
  BrowserPage(const BrowserPage&) = delete;
  BrowserPage& operator=(const BrowserPage&) = delete;

  // Starts the program with the page that leads to `url`, and does not wait for it.
  Result<void> open(const std::string& program, const std::string& url);
  void remove();

 private:
  std::string directory_;
};

}  // namespace assay::cli
