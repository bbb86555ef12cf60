// The command line: argv in, one session or query, exit code out (0 done, 1 failed, 2 wrong usage).
#pragma once

namespace assay::cli {

int run(int argc, char** argv);

}  // namespace assay::cli
