// Colours, dashes and shapes. A scheme has one of each, so that no two are told apart by colour alone.

export const shapes = ["circle", "square", "triangle", "diamond", "cross", "star", "down", "bar"] as const;
const dashes: number[][] = [[], [8, 4], [2, 3], [10, 4, 2, 4], [], [8, 4], [2, 3], [10, 4, 2, 4]];

const count = 8;

export const colourClass = (index: number) => `c${index % count}`;
export const shapeOf = (index: number) => shapes[index % shapes.length]!;
export const dashOf = (index: number) => dashes[(index + Math.floor(index / count)) % dashes.length]!;

/** A colour of the style sheet, for what is drawn on a canvas. */
export const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
export const schemeColour = (index: number) => colour(`c${index % count}`);

/** The outline of a mark of "radius" r around the origin, as SVG path data. */
export function outline(shape: (typeof shapes)[number], r: number): string {
  switch (shape) {
    case "circle":
      return `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`;
    case "square":
      return `M${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}z`;
    case "triangle":
      return `M0 ${-1.2 * r}L${1.15 * r} ${0.9 * r}H${-1.15 * r}z`;
    case "down":
      return `M0 ${1.2 * r}L${1.15 * r} ${-0.9 * r}H${-1.15 * r}z`;
    case "diamond":
      return `M0 ${-1.3 * r}L${1.3 * r} 0L0 ${1.3 * r}L${-1.3 * r} 0z`;
    case "cross": {
      const t = r * 0.45;
      return `M${-t} ${-r * 1.1}h${2 * t}v${r * 1.1 - t}h${r * 1.1 - t}v${2 * t}h${t - r * 1.1}v${r * 1.1 - t}h${-2 * t}v${t - r * 1.1}h${t - r * 1.1}v${-2 * t}h${r * 1.1 - t}z`;
    }
    case "star": {
      const points = Array.from({ length: 10 }, (_, i) => {
        const angle = (Math.PI * i) / 5 - Math.PI / 2;
        const length = i % 2 ? 0.55 * r : 1.35 * r;
        return `${(length * Math.cos(angle)).toFixed(2)} ${(length * Math.sin(angle)).toFixed(2)}`;
      });
      return `M${points.join("L")}z`;
    }
    case "bar":
      return `M${-1.3 * r} ${-0.5 * r}h${2.6 * r}v${r}h${-2.6 * r}z`;
  }
}
