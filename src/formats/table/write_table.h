// Functions as a table: self and total of every quantity, as csv or tsv with a header line.
//
// Self values add up to the selection's totals; a function that recurs in a stack counts once in
// its total. Cells with the separator, quotes or line ends are quoted (RFC 4180).
#pragma once

#include "formats/export/output.h"
#include "formats/export/totals.h"

namespace assay::formats {

// Rows come in the order of cpu, off or wall time.
void write_table(const SelectedRun& run, const std::vector<TotalRow>& rows, Metric by,
                 char separator, Output& output);

}  // namespace assay::formats
