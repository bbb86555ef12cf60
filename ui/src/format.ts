// Numbers as people read them.

export function duration(ns: number): string {
  const size = Math.abs(ns);
  if (size >= 60e9) return `${Math.floor(ns / 60e9)} min ${((ns / 1e9) % 60).toFixed(0)} s`;
  if (size >= 1e9) return `${digits(ns / 1e9)} s`;
  if (size >= 1e6) return `${digits(ns / 1e6)} ms`;
  if (size >= 1e3) return `${digits(ns / 1e3)} µs`;
  return `${Math.round(ns)} ns`;
}

// Three figures that mean something.
export function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  return size >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function percent(share: number): string {
  if (!Number.isFinite(share)) return "–";
  const value = share * 100;
  if (value !== 0 && Math.abs(value) < 0.05) return "< 0.1 %";
  return `${value.toFixed(1)} %`;
}

export function count(value: number): string {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

export function amount(value: number, unit: string): string {
  if (unit === "ns") return duration(value);
  if (unit === "share") return percent(value);
  if (unit !== "bytes" && unit !== "bytes/s") {
    const size = Math.abs(value);
    const tail = unit === "count" || unit === "" ? "" : ` ${unit.replace("count", "")}`;
    if (size >= 1e9) return `${digits(value / 1e9)}G${tail}`;
    if (size >= 1e6) return `${digits(value / 1e6)}M${tail}`;
    if (size >= 1e4) return `${digits(value / 1e3)}k${tail}`;
    return `${Number.isInteger(value) ? count(value) : digits(value)}${tail}`;
  }
  const steps = ["B", "kB", "MB", "GB", "TB"];
  let step = 0;
  let rest = value;
  while (Math.abs(rest) >= 1000 && step < 4) {
    rest /= 1000;
    ++step;
  }
  return `${step === 0 ? Math.round(rest) : digits(rest)} ${steps[step]}${unit.slice(5)}`;
}

// As compilers write a path, "build/../src/a.cpp", but without the detours.
export function tidyPath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    const last = parts[parts.length - 1];
    if (part === ".." && last && last !== "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

// 95 % interval of a share seen in this many samples (Wilson), as ± half its width.
export function shareError(share: number, samples: number): number {
  if (samples <= 0) return 1;
  const z = 1.96;
  const n = samples + z * z;
  return (z / n) * Math.sqrt(share * (1 - share) * samples + (z * z) / 4);
}

export function seconds(ns: number, step: number): string {
  const places = step >= 1e9 ? 0 : step >= 1e8 ? 1 : step >= 1e7 ? 2 : 3;
  return `${(ns / 1e9).toFixed(places)} s`;
}
