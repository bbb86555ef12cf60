// hide_secrets(): a command line or URL as it may be shown and kept.
//
// What is given to --load may hold secrets: headers (Authorization, Cookie, anything named token,
// secret, password or key), the user and password of a URL, and parameters of a URL with such
// names. Runs and reports are passed on, so their values become ***; the rest stays as it was. In:
// text as a shell would read it, quotes and all. Pure; never fails. What else a command line may
// hold (the body of a request, options of other programs) is not known and stays.
#pragma once

#include <string>
#include <string_view>

namespace assay::load {

std::string hide_secrets(std::string_view text);

}  // namespace assay::load
