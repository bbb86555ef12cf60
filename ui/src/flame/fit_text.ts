// As much of a text as fits into some pixels; what is cut ends in an ellipsis. Widths of letters are
// measured once each: measuring whole names takes most of a frame.

export class TextFitter {
  private widths = new Map<string, number>();
  private font = "";

  fit(context: CanvasRenderingContext2D, text: string, room: number): string {
    if (this.font !== context.font) {
      this.font = context.font;
      this.widths.clear();
    }
    const ellipsis = this.letter(context, "…");
    let width = 0;
    let fits = 0; // letters that leave room for an ellipsis
    for (let i = 0; i < text.length; ++i) {
      width += this.letter(context, text[i]);
      if (width > room) return fits < 2 ? "" : text.slice(0, fits) + "…";
      if (width + ellipsis <= room) fits = i + 1;
    }
    return text;
  }

  private letter(context: CanvasRenderingContext2D, letter: string): number {
    let width = this.widths.get(letter);
    if (width === undefined) {
      width = context.measureText(letter).width;
      this.widths.set(letter, width);
    }
    return width;
  }
}
