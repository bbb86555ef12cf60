#include "run/file/schema.h"

namespace assay::run {

// Plain column types and no STRICT keyword, so that any sqlite3 shell of the last decade reads a
// run. Rows are appended in id order, so every flush touches only the last page of each table.
const char* const kSchemaSql = R"sql(
PRAGMA application_id = 1095975257;
PRAGMA user_version = 1;

CREATE TABLE info(key TEXT PRIMARY KEY, value);
CREATE TABLE fact(id INTEGER PRIMARY KEY, scope TEXT NOT NULL, key TEXT NOT NULL,
  value TEXT NOT NULL, UNIQUE(scope, key));
CREATE TABLE note(id INTEGER PRIMARY KEY, topic TEXT NOT NULL, text TEXT NOT NULL,
  remedy TEXT NOT NULL, UNIQUE(topic, text));

CREATE TABLE process(id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, parent_pid INTEGER NOT NULL,
  exe TEXT NOT NULL, comm TEXT NOT NULL, cmdline TEXT NOT NULL, role TEXT NOT NULL,
  build_id TEXT NOT NULL, cgroup TEXT NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER);
CREATE TABLE thread(id INTEGER PRIMARY KEY, process INTEGER NOT NULL, tid INTEGER NOT NULL,
  name TEXT NOT NULL, pool TEXT NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER);

CREATE TABLE module(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, path TEXT NOT NULL,
  build_id TEXT NOT NULL);
CREATE TABLE mapping(id INTEGER PRIMARY KEY, process INTEGER NOT NULL, start INTEGER NOT NULL,
  end INTEGER NOT NULL, file_offset INTEGER NOT NULL, module INTEGER NOT NULL,
  from_ns INTEGER NOT NULL);
CREATE TABLE frame(id INTEGER PRIMARY KEY, module INTEGER NOT NULL, address INTEGER NOT NULL);
CREATE TABLE stack(id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, frame INTEGER NOT NULL);
CREATE TABLE function(id INTEGER PRIMARY KEY, name TEXT NOT NULL, system_name TEXT NOT NULL,
  module INTEGER NOT NULL, file TEXT NOT NULL, line INTEGER NOT NULL);
CREATE TABLE location(frame INTEGER NOT NULL, depth INTEGER NOT NULL, function INTEGER NOT NULL,
  line INTEGER NOT NULL, inlined INTEGER NOT NULL, PRIMARY KEY(frame, depth)) WITHOUT ROWID;
CREATE TABLE data_name(process INTEGER NOT NULL, address INTEGER NOT NULL, name TEXT NOT NULL,
  PRIMARY KEY(process, address)) WITHOUT ROWID;
CREATE TABLE source_line(file TEXT NOT NULL, line INTEGER NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY(file, line)) WITHOUT ROWID;

CREATE TABLE series(id INTEGER PRIMARY KEY, scope INTEGER NOT NULL, kind INTEGER NOT NULL,
  owner INTEGER NOT NULL, name TEXT NOT NULL, unit TEXT NOT NULL, label TEXT NOT NULL);
CREATE TABLE point(id INTEGER PRIMARY KEY, series INTEGER NOT NULL, time_ns INTEGER NOT NULL,
  value INTEGER NOT NULL);
CREATE TABLE loss(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, cpu INTEGER NOT NULL,
  time_ns INTEGER NOT NULL, count INTEGER NOT NULL);

CREATE TABLE sample_block(id INTEGER PRIMARY KEY, process INTEGER NOT NULL,
  begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, count INTEGER NOT NULL,
  weight_ns INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE wait_block(id INTEGER PRIMARY KEY, process INTEGER NOT NULL,
  begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, count INTEGER NOT NULL,
  blocked_ns INTEGER NOT NULL, runqueue_ns INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE heap_block(id INTEGER PRIMARY KEY, process INTEGER NOT NULL,
  begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, count INTEGER NOT NULL,
  bytes INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE heap_free_block(id INTEGER PRIMARY KEY, process INTEGER NOT NULL,
  begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, count INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE heap_snapshot(id INTEGER PRIMARY KEY, process INTEGER NOT NULL,
  time_ns INTEGER NOT NULL, live_bytes INTEGER NOT NULL, live_objects INTEGER NOT NULL,
  samples INTEGER NOT NULL);
CREATE TABLE heap_sum(id INTEGER PRIMARY KEY, thread INTEGER NOT NULL, stack INTEGER NOT NULL,
  live_bytes INTEGER NOT NULL, live_objects INTEGER NOT NULL, bytes INTEGER NOT NULL,
  objects INTEGER NOT NULL, rate INTEGER NOT NULL);
CREATE TABLE thread_second(second INTEGER NOT NULL, thread INTEGER NOT NULL,
  samples INTEGER NOT NULL, weight_ns INTEGER NOT NULL, waits INTEGER NOT NULL,
  blocked_ns INTEGER NOT NULL, runqueue_ns INTEGER NOT NULL,
  PRIMARY KEY(second, thread)) WITHOUT ROWID;

CREATE VIEW thread_name AS
  SELECT t.id AS thread, p.pid, t.tid, t.name, t.pool, p.role, p.comm AS process
  FROM thread t JOIN process p ON p.id = t.process;
CREATE VIEW frame_name AS
  SELECT f.id AS frame,
    coalesce(fn.name, m.path || printf('+0x%x', f.address)) AS name,
    coalesce(fn.file, '') AS file, coalesce(l.line, 0) AS line, m.path AS module
  FROM frame f JOIN module m ON m.id = f.module
  LEFT JOIN location l ON l.frame = f.id AND l.depth = 0
  LEFT JOIN function fn ON fn.id = l.function;
CREATE VIEW process_total AS
  SELECT p.id AS process, p.pid, p.role,
    (SELECT coalesce(sum(count), 0) FROM sample_block b WHERE b.process = p.id) AS samples,
    (SELECT coalesce(sum(weight_ns), 0) FROM sample_block b WHERE b.process = p.id) AS sampled_ns,
    (SELECT coalesce(sum(count), 0) FROM wait_block b WHERE b.process = p.id) AS waits,
    (SELECT coalesce(sum(blocked_ns), 0) FROM wait_block b WHERE b.process = p.id) AS blocked_ns,
    (SELECT coalesce(sum(runqueue_ns), 0) FROM wait_block b WHERE b.process = p.id) AS runqueue_ns
  FROM process p;
CREATE VIEW series_point AS
  SELECT s.name, s.label, s.unit, s.scope, s.owner,
    (pt.time_ns - (SELECT value FROM info WHERE key = 'window_begin_ns')) / 1e9 AS time_s, pt.value
  FROM point pt JOIN series s ON s.id = pt.series;
)sql";

}  // namespace assay::run
