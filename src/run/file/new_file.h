// make_run_file: puts an empty run, with its info, at a path in one step.
//
// The file is made beside its place and renamed into it (base/private_file.h), so at every moment the
// path does not exist, is the old file, or is a run that opens; only its owner may read it. Out: the
// file that was made, for the caller that continues to write it. Failures: the path exists and
// `overwrite` is false, is no regular file, is a run that a capture is writing, or cannot be written.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "model/run_info.h"
#include "run/file/run_file.h"

namespace assay::run {

// Whether the path is free and in a directory that can be written to.
Result<void> check_place(const std::string& path, bool overwrite);
Result<std::shared_ptr<RunFile>> make_run_file(const std::string& path, const model::RunInfo& info,
                                               bool overwrite);

}  // namespace assay::run
