// Light or dark: the system's preference, unless the reader chose.

const kKey = "assay-theme";

function stored(): string {
  try {
    return localStorage.getItem(kKey) ?? "";
  } catch {
    return ""; // a page from a file may have no storage
  }
}

export function isDark(): boolean {
  const chosen = stored() || document.documentElement.dataset.theme || "";
  if (chosen) return chosen === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

export function applyTheme(): void {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
}

export function toggleTheme(): void {
  const next = isDark() ? "light" : "dark";
  try {
    localStorage.setItem(kKey, next);
  } catch {
    // Remembered for this page only.
  }
  document.documentElement.dataset.theme = next;
}

export function watchTheme(changed: () => void): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    if (stored()) return;
    document.documentElement.dataset.theme =
      matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    changed();
  });
}
