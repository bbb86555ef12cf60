// Reads the tables that src/view/data/columns.h writes. Foreign bytes: every length is checked.

export interface Table {
  kind: string;
  scalars: Record<string, number>;
  numbers: Record<string, Float64Array>;
  texts: Record<string, string[]>;
}

type Column = [name: string, encoding: string, count: number, bytes: number];
interface Header {
  kind: string;
  scalars: Record<string, number>;
  columns: Column[];
}

class Cursor {
  at = 0;
  constructor(readonly bytes: Uint8Array) {}

  // LEB128. Beyond 2^53 the value is rounded, as every number of a page is.
  varint(): number {
    const bytes = this.bytes;
    let byte = bytes[this.at++];
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    let unit = 128;
    for (;;) {
      if (this.at >= bytes.length) throw new Error("a table ends within a number");
      byte = bytes[this.at++];
      value += (byte & 0x7f) * unit;
      if (byte < 0x80) return value;
      unit *= 128;
    }
  }
}

// A large run has millions of numbers, nearly all of them short: those of up to four bytes are put
// together here, in integers.
function readNumbers(bytes: Uint8Array, count: number, deltas: boolean): Float64Array {
  if (count > bytes.length) throw new Error("a column claims more numbers than it has bytes");
  const cursor = new Cursor(bytes);
  const out = new Float64Array(count);
  const safe = bytes.length - 4; // from here on a number may be cut off
  let at = 0;
  let last = 0;
  for (let i = 0; i < count; ++i) {
    let value = 0;
    if (at < safe) {
      value = bytes[at++];
      if (value >= 0x80) {
        let byte = bytes[at++];
        value = (value & 0x7f) | ((byte & 0x7f) << 7);
        if (byte >= 0x80) {
          byte = bytes[at++];
          value |= (byte & 0x7f) << 14;
          if (byte >= 0x80) {
            byte = bytes[at++];
            value |= (byte & 0x7f) << 21;
            if (byte >= 0x80) {
              cursor.at = at;
              value += cursor.varint() * 2 ** 28;
              at = cursor.at;
            }
          }
        }
      }
    } else {
      cursor.at = at;
      value = cursor.varint();
      at = cursor.at;
    }
    if (deltas) value = last += value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    out[i] = value;
  }
  if (at > bytes.length) throw new Error("a column is too short");
  return out;
}

function isAscii(bytes: Uint8Array, from: number, to: number): boolean {
  for (let i = from; i < to; ++i) if (bytes[i] >= 0x80) return false;
  return true;
}

// Names are plain ASCII as a rule: the column is decoded once and cut up, which is many times faster
// than decoding each.
function readTexts(bytes: Uint8Array, count: number): string[] {
  if (count > bytes.length) throw new Error("a column claims more texts than it has bytes");
  const cursor = new Cursor(bytes);
  const decoder = new TextDecoder();
  const whole = new TextDecoder("latin1").decode(bytes); // a character for a byte
  const out: string[] = [];
  for (let i = 0; i < count; ++i) {
    const length = cursor.varint();
    const from = cursor.at;
    const to = from + length;
    if (to > bytes.length) throw new Error("a text is longer than its column");
    out.push(isAscii(bytes, from, to) ? whole.slice(from, to) : decoder.decode(bytes.subarray(from, to)));
    cursor.at = to;
  }
  return out;
}

export function readTable(data: ArrayBuffer | Uint8Array): Table {
  const bytes = data instanceof Uint8Array ? data : new Uint8Array(data);
  if (bytes.length < 8 || String.fromCharCode(...bytes.subarray(0, 4)) !== "ASC1") {
    throw new Error("this is not a table of Assay");
  }
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(4, true);
  if (8 + length > bytes.length) throw new Error("a table's header is cut off");
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length))) as Header;
  const table: Table = { kind: header.kind, scalars: header.scalars, numbers: {}, texts: {} };
  let at = 8 + length;
  for (const [name, encoding, count, size] of header.columns) {
    if (at + size > bytes.length) throw new Error(`column ${name} is cut off`);
    const column = bytes.subarray(at, at + size);
    if (encoding === "s") table.texts[name] = readTexts(column, count);
    else table.numbers[name] = readNumbers(column, count, encoding === "d");
    at += size;
  }
  return table;
}

// name length, name, byte length, bytes (src/view/html.cpp).
export function readBundle(bytes: Uint8Array): Map<string, Uint8Array> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const parts = new Map<string, Uint8Array>();
  let at = 0;
  const take = (): Uint8Array => {
    const length = view.getUint32(at, true);
    at += 4;
    if (at + length > bytes.length) throw new Error("the data of this page is cut off");
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const name = new TextDecoder().decode(take());
    parts.set(name, take());
  }
  return parts;
}
