// What the pointer or the keyboard is on, for the bar at the bottom. Its own little store, so that a
// move of the mouse draws one line of text and nothing else.

export interface Details {
  name: string;
  where: string; // file:line
  module: string;
  figures: string[];
}

let current: Details | null = null;
let listener: ((details: Details | null) => void) | null = null;

export function showDetails(details: Details | null): void {
  current = details;
  listener?.(current);
}
export function listenDetails(to: typeof listener): void {
  listener = to;
}
