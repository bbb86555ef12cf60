#include "symbol/dwarf/line_program.h"

#include <algorithm>

#include <dwarf.h>

namespace assay::symbol {
namespace {

constexpr size_t kMaxRows = 8 << 20;
constexpr size_t kMaxFiles = 1 << 17;
constexpr size_t kMaxPathBytes = 4096;
constexpr size_t kMaxEntryFormats = 32;
constexpr uint64_t kMaxPathPoolBytes = 64 << 20;

std::string join(std::string_view dir, std::string_view name) {
  if (dir.empty() || name.starts_with('/')) return std::string(name);
  std::string out(dir);
  if (!out.ends_with('/')) out += '/';
  return out += name;
}

class Reader {
 public:
  Reader(const DwarfSections& sections, std::string_view comp_dir,
         const std::function<bool(uint64_t)>& keep)
      : sections_(sections), comp_dir_(comp_dir), keep_(keep) {}

  bool read_header(uint64_t offset) {
    ByteReader length(sections_.line.view(offset, 12));
    uint64_t size = length.u32();
    is_64_ = size == 0xffffffff;
    if (is_64_) size = length.u64();
    uint64_t begin = offset + length.offset();
    if (!length.ok() || begin > sections_.line.size || size > sections_.line.size - begin)
      return false;
    cursor_ = ByteReader(sections_.line.view(begin, size));
    version_ = cursor_.u16();
    if (version_ < 2 || version_ > 5) return false;
    if (version_ >= 5) {
      address_size_ = cursor_.u8();
      cursor_.u8();  // segment selector size
    }
    uint64_t header_size = cursor_.sized(is_64_ ? 8 : 4);
    uint64_t program = cursor_.offset() + header_size;
    min_instruction_ = cursor_.u8();
    if (version_ >= 4)
      cursor_.u8();  // operations per instruction: more than one only on VLIW machines
    cursor_.u8();    // default_is_stmt
    line_base_ = cursor_.fixed<int8_t>();
    line_range_ = cursor_.u8();
    opcode_base_ = cursor_.u8();
    operand_counts_ = cursor_.bytes(opcode_base_ > 0 ? opcode_base_ - 1 : 0);
    if (!cursor_.ok() || line_range_ == 0) return false;
    if (version_ >= 5) {
      read_tables_v5();
    } else {
      read_tables_v4();
    }
    if (!cursor_.ok()) return false;
    cursor_.seek(program);
    return cursor_.ok();
  }

  void run(std::vector<LineRow>& rows);
  std::vector<std::string> take_files() { return std::move(files_); }

 private:
  struct Sequence {
    uint64_t address = 0;
    uint64_t file = 1;
    uint64_t line = 1;
    size_t first_row = 0;
  };

  void read_tables_v4() {
    std::vector<std::string> dirs{std::string(comp_dir_)};
    while (cursor_.ok() && dirs.size() < kMaxFiles) {
      std::string_view dir = cursor_.text();
      if (dir.empty()) break;
      dirs.push_back(join(comp_dir_, dir.substr(0, kMaxPathBytes)));
    }
    files_.emplace_back();  // numbers count from 1
    while (cursor_.ok() && files_.size() < kMaxFiles) {
      std::string_view name = cursor_.text();
      if (name.empty()) break;
      add_file(dirs, name, cursor_.uleb());
      cursor_.uleb();  // time
      cursor_.uleb();  // size
    }
  }

  void add_file(const std::vector<std::string>& dirs, std::string_view name, uint64_t dir) {
    static const std::string kNone;
    std::string path = join(dir < dirs.size() ? dirs[dir] : kNone, name.substr(0, kMaxPathBytes));
    pool_bytes_ += path.size();
    files_.push_back(pool_bytes_ <= kMaxPathPoolBytes ? std::move(path) : std::string());
  }

  struct EntryFormat {
    uint64_t content, form;
  };
  std::vector<EntryFormat> read_formats() {
    std::vector<EntryFormat> out(std::min<size_t>(cursor_.u8(), kMaxEntryFormats));
    for (auto& format : out) {
      format.content = cursor_.uleb();
      format.form = cursor_.uleb();
    }
    return out;
  }

  struct FormValue {
    uint64_t number = 0;
    std::string_view text;
  };
  FormValue read_form(uint64_t form) {
    FormValue out;
    unsigned width = is_64_ ? 8 : 4;
    switch (form) {
      case DW_FORM_string:
        out.text = cursor_.text();
        break;
      case DW_FORM_line_strp:
        out.text = sections_.line_str.text(cursor_.sized(width));
        break;
      case DW_FORM_strp:
        out.text = sections_.str.text(cursor_.sized(width));
        break;
      case DW_FORM_udata:
        out.number = cursor_.uleb();
        break;
      case DW_FORM_data1:
        out.number = cursor_.u8();
        break;
      case DW_FORM_data2:
        out.number = cursor_.u16();
        break;
      case DW_FORM_data4:
        out.number = cursor_.u32();
        break;
      case DW_FORM_data8:
        out.number = cursor_.u64();
        break;
      case DW_FORM_data16:
        cursor_.skip(16);
        break;
      case DW_FORM_block:
        cursor_.skip(cursor_.uleb());
        break;
      default:
        cursor_.fail();
        break;
    }
    return out;
  }

  void read_tables_v5() {
    std::vector<std::string> dirs;
    auto formats = read_formats();
    uint64_t count = std::min<uint64_t>(cursor_.uleb(), kMaxFiles);
    for (uint64_t i = 0; i < count && cursor_.ok(); ++i) {
      std::string_view path;
      for (const auto& format : formats) {
        FormValue value = read_form(format.form);
        if (format.content == DW_LNCT_path) path = value.text;
      }
      pool_bytes_ += path.size();
      if (pool_bytes_ > kMaxPathPoolBytes) path = {};
      dirs.push_back(join(comp_dir_, path.substr(0, kMaxPathBytes)));
    }
    formats = read_formats();
    count = std::min<uint64_t>(cursor_.uleb(), kMaxFiles);
    for (uint64_t i = 0; i < count && cursor_.ok(); ++i) {
      std::string_view path;
      uint64_t dir = 0;
      for (const auto& format : formats) {
        FormValue value = read_form(format.form);
        if (format.content == DW_LNCT_path) path = value.text;
        if (format.content == DW_LNCT_directory_index) dir = value.number;
      }
      add_file(dirs, path, dir);
    }
  }

  void emit(std::vector<LineRow>& rows, bool end) {
    auto file = static_cast<uint32_t>(std::min<uint64_t>(sequence_.file, LineRow::kEnd - 1));
    auto line = static_cast<uint32_t>(std::min<uint64_t>(sequence_.line, UINT32_MAX));
    // A row that only repeats its predecessor's line tells nothing new.
    if (!end && rows.size() > sequence_.first_row && rows.back().file == file &&
        rows.back().line == line)
      return;
    rows.push_back({sequence_.address, end ? LineRow::kEnd : file, end ? 0 : line});
  }
  void finish_sequence(std::vector<LineRow>& rows) {
    bool empty = rows.size() <= sequence_.first_row;
    if (!empty && !keep_(rows[sequence_.first_row].address)) rows.resize(sequence_.first_row);
    sequence_ = {};
    sequence_.first_row = rows.size();
  }
  void extended(std::vector<LineRow>& rows);
  void standard(uint8_t opcode, std::vector<LineRow>& rows);

  const DwarfSections& sections_;
  std::string_view comp_dir_;
  const std::function<bool(uint64_t)>& keep_;
  ByteReader cursor_;
  bool is_64_ = false;
  uint16_t version_ = 0;
  uint8_t address_size_ = 8, min_instruction_ = 1, line_range_ = 1, opcode_base_ = 0;
  int8_t line_base_ = 0;
  std::string_view operand_counts_;
  std::vector<std::string> files_;
  uint64_t pool_bytes_ = 0;
  Sequence sequence_;
};

void Reader::run(std::vector<LineRow>& rows) {
  while (!cursor_.at_end() && rows.size() < kMaxRows) {
    uint8_t opcode = cursor_.u8();
    if (opcode >= opcode_base_) {
      unsigned adjusted = opcode - opcode_base_;
      sequence_.address += uint64_t{adjusted / line_range_} * min_instruction_;
      sequence_.line += static_cast<uint64_t>(int64_t{line_base_} + adjusted % line_range_);
      emit(rows, false);
    } else if (opcode == 0) {
      extended(rows);
    } else {
      standard(opcode, rows);
    }
    if (!cursor_.ok()) break;
  }
  rows.resize(sequence_.first_row);  // a sequence without its end is damaged
  // As libdw: an end comes before a row of the next sequence at the same address.
  std::stable_sort(rows.begin(), rows.end(), [](const LineRow& a, const LineRow& b) {
    if (a.address != b.address) return a.address < b.address;
    return (a.file == LineRow::kEnd) > (b.file == LineRow::kEnd);
  });
}

void Reader::extended(std::vector<LineRow>& rows) {
  uint64_t size = cursor_.uleb();
  uint64_t end = cursor_.offset() + size;
  if (size == 0 || size > cursor_.left()) return cursor_.fail();
  switch (cursor_.u8()) {
    case DW_LNE_end_sequence:
      emit(rows, true);
      finish_sequence(rows);
      break;
    case DW_LNE_set_address:
      sequence_.address = cursor_.sized(static_cast<unsigned>(size - 1));
      break;
    case DW_LNE_define_file:
      if (files_.size() < kMaxFiles) {
        std::string_view name = cursor_.text();
        add_file({std::string(comp_dir_)}, name, cursor_.uleb());
      }
      break;
    default:
      break;
  }
  if (cursor_.ok()) cursor_.seek(end);
}

void Reader::standard(uint8_t opcode, std::vector<LineRow>& rows) {
  switch (opcode) {
    case DW_LNS_copy:
      emit(rows, false);
      break;
    case DW_LNS_advance_pc:
      sequence_.address += cursor_.uleb() * min_instruction_;
      break;
    case DW_LNS_advance_line:
      sequence_.line += static_cast<uint64_t>(cursor_.sleb());
      break;
    case DW_LNS_set_file:
      sequence_.file = cursor_.uleb();
      break;
    case DW_LNS_set_column:
      cursor_.uleb();
      break;
    case DW_LNS_const_add_pc:
      sequence_.address += uint64_t{(255u - opcode_base_) / line_range_} * min_instruction_;
      break;
    case DW_LNS_fixed_advance_pc:
      sequence_.address += cursor_.u16();
      break;
    case DW_LNS_negate_stmt:
    case DW_LNS_set_basic_block:
    case DW_LNS_set_prologue_end:
    case DW_LNS_set_epilogue_begin:
      break;
    default: {
      auto operands = static_cast<uint8_t>(operand_counts_[opcode - 1]);
      for (uint8_t i = 0; i < operands && cursor_.ok(); ++i) cursor_.uleb();
      break;
    }
  }
}

}  // namespace

LineProgram LineProgram::read(const DwarfSections& sections, uint64_t offset,
                              std::string_view comp_dir, const std::function<bool(uint64_t)>& keep,
                              bool with_rows) {
  LineProgram out;
  Reader reader(sections, comp_dir, keep);
  if (!reader.read_header(offset)) return out;
  if (with_rows) reader.run(out.rows);
  out.files = reader.take_files();
  return out;
}

}  // namespace assay::symbol
