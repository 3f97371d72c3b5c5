// A curve or several: drawn by uPlot, with error bars, and as a table for who wants one.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { number, percent } from "./format";

export interface Line {
  label: string;
  x: number[];
  y: number[];
  error?: (number | null)[];
}

interface Props {
  title: string;
  lines: Line[];
  xLabel: string;
  isShare?: boolean;
  height?: number;
  onPick?: (x: number) => void;
  range?: [number, number];
  cursorX?: number;
}

const COLOURS = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"];
const SHOWN_ROWS = 12;

export function Chart(props: Props) {
  const { title, lines, xLabel } = props;
  const said = (value: number) => (props.isShare ? percent(value) : number(value));
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const drawn = useRef<Line[] | null>(null);
  const names = lines.map((line) => line.label).join("|");

  useEffect(() => {
    const element = place.current!;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const make = () => {
      plot.current?.destroy();
      drawn.current = latest.current.lines;
      plot.current = new uPlot(options(element, latest), joined(latest.current.lines), element);
    };
    make();
    const resized = new ResizeObserver(() => {
      plot.current?.setSize({ width: element.clientWidth, height: props.height ?? 190 });
    });
    resized.observe(element);
    dark.addEventListener("change", make);
    const themed = new MutationObserver(make);
    themed.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => {
      resized.disconnect();
      themed.disconnect();
      dark.removeEventListener("change", make);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [names, xLabel]);
  useEffect(() => {
    // A plot that was just made is not ready for other data, and has these.
    if (drawn.current === lines) return;
    drawn.current = lines;
    plot.current?.setData(joined(lines));
  }, [lines]);
  useEffect(() => {
    // The same holds of drawing it again; nothing but the cursor changed.
    if (place.current!.querySelector(".u-ready")) plot.current?.redraw(false);
  }, [props.cursorX]);

  const longest = lines.reduce((a, b) => (b.x.length > a.x.length ? b : a), lines[0]);
  const last = lines
    .filter((line) => line.y.length > 0)
    .map((line) => `${line.label} ${said(line.y[line.y.length - 1])}`)
    .join(", ");
  return (
    <figure class="chart" data-points={longest?.x.length ?? 0}>
      <figcaption>
        <span class="chart-title">{title}</span>
        <span class="chart-keys">
          {lines.map((line, i) => (
            <span key={line.label} class="chart-key">
              <i class={`swatch swatch-${i % COLOURS.length}`} />
              {lines.length > 1 && `${line.label} `}
              <b>{line.y.length > 0 ? said(line.y[line.y.length - 1]) : "-"}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={place} class="chart-place" role="img" aria-label={`${title}: ${last || "nothing yet"}`} />
      <details class="chart-table">
        <summary>As a table</summary>
        <table>
          <thead>
            <tr>
              <th scope="col">{xLabel}</th>
              {lines.map((line) => (
                <th key={line.label} scope="col">{line.label}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {tableRows(lines).map((row) => (
              <tr key={row[0]}>
                {row.map((cell, i) => (
                  <td key={i}>{cell === null ? "" : number(cell, 4)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </figure>
  );
}

// One axis for all lines; where a line has no value it has null. Of values that came
// twice for a step, as of ratings, the last counts.
function joined(lines: Line[]): uPlot.AlignedData {
  const at = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  const places = new Map(at.map((x, place) => [x, place]));
  const columns = lines.map((line) => {
    const column: (number | null)[] = at.map(() => null);
    line.x.forEach((x, i) => (column[places.get(x)!] = line.y[i]));
    return column;
  });
  return [at, ...columns];
}

function tableRows(lines: Line[]): (number | null)[][] {
  const [x, ...ys] = joined(lines) as (number | null)[][];
  if (x === undefined) return [];
  const stride = Math.max(1, Math.ceil(x.length / SHOWN_ROWS));
  const rows = [];
  for (let i = x.length - 1; i >= 0; i -= stride) rows.push([x[i], ...ys.map((y) => y[i] ?? null)]);
  return rows.reverse();
}

function options(element: HTMLElement, latest: { current: Props }): uPlot.Options {
  const colour = colours(element);
  const { lines, isShare, height, range } = latest.current;
  const axis = {
    stroke: colour("--soft"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: colour("--rule"), width: 1 },
    ticks: { show: false },
  };
  return {
    width: element.clientWidth,
    height: height ?? 190,
    padding: [8, 12, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { size: 6 },
      drag: { x: false, y: false },
    },
    scales: {
      x: { time: false, range: (_, low, high) => (low === high ? [(low ?? 0) - 1, (high ?? 0) + 1] : [low, high]) },
      y: range || isShare ? { range: range ?? [0, 1] } : { range: bounds(latest) },
    },
    series: [
      {},
      ...lines.map((line, i) => ({
        label: line.label,
        stroke: colour(COLOURS[i % COLOURS.length]),
        width: 2,
        spanGaps: true,
        points: { show: line.x.length < 3 || !!line.error, size: 5 },
      })),
    ],
    axes: [
      { ...axis, size: 26, space: 70, values: (_, at) => at.map(short) },
      { ...axis, size: 52, space: 36, values: (_, at) => at.map((v) => (isShare ? `${Math.round(v * 100)} %` : short(v))) },
    ],
    hooks: {
      draw: [(u) => drawErrors(u, latest.current, COLOURS.map(colour)), (u) => drawCursor(u, latest.current, colour("--accent"))],
      ready: [
        (u) => {
          u.root.classList.add("u-ready");
          u.over.addEventListener("click", () => {
            const { left } = u.cursor;
            if (left !== undefined && left >= 0) latest.current.onPick?.(u.posToVal(left, "x"));
          });
        },
      ],
    },
  };
}

// Returns the colours of the theme, as a canvas takes them: of variables only an
// element knows which of their two values holds.
function colours(element: HTMLElement): (name: string) => string {
  return (name) => {
    element.style.color = `var(${name})`;
    const found = getComputedStyle(element).color;
    element.style.color = "";
    return found;
  };
}

// The values and their error bars, with some room.
function bounds(latest: { current: Props }) {
  return (_: uPlot, low: number | null, high: number | null): [number, number] => {
    if (low === null || high === null) return [0, 1];
    for (const line of latest.current.lines) {
      line.error?.forEach((error, i) => {
        low = Math.min(low!, line.y[i] - (error ?? 0));
        high = Math.max(high!, line.y[i] + (error ?? 0));
      });
    }
    const room = (high - low) * 0.08 || Math.abs(high) * 0.1 || 1;
    return [low >= 0 && low - room < 0 ? 0 : low - room, high + room];
  };
}

function drawErrors(u: uPlot, props: Props, colours: string[]): void {
  const { ctx } = u;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  props.lines.forEach((line, place) => {
    ctx.strokeStyle = colours[place % colours.length];
    line.error?.forEach((error, i) => {
      if (!error) return;
      const x = u.valToPos(line.x[i], "x", true);
      const [top, end] = [line.y[i] + error, line.y[i] - error].map((y) => u.valToPos(y, "y", true));
      const half = 3 * devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, end);
      ctx.moveTo(x - half, top);
      ctx.lineTo(x + half, top);
      ctx.moveTo(x - half, end);
      ctx.lineTo(x + half, end);
      ctx.stroke();
    });
  });
  ctx.restore();
}

function drawCursor(u: uPlot, props: Props, colour: string): void {
  if (props.cursorX === undefined) return;
  const x = u.valToPos(props.cursorX, "x", true);
  u.ctx.save();
  u.ctx.strokeStyle = colour;
  u.ctx.lineWidth = 2 * devicePixelRatio;
  u.ctx.beginPath();
  u.ctx.moveTo(x, u.bbox.top);
  u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
  u.ctx.stroke();
  u.ctx.restore();
}

function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(3))}k`;
  return String(Number(value.toPrecision(4)));
}

// A small picture of a curve, without axes.
export function Spark({ values, label }: { values: number[]; label: string }) {
  if (values.length < 2) return <span class="spark-none">{label}</span>;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const at = values.map((value, i) => {
    const x = (100 * i) / (values.length - 1);
    const y = 26 - (24 * (value - low)) / (high - low || 1);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  return (
    <svg class="spark" viewBox="0 0 100 28" preserveAspectRatio="none" role="img" aria-label={label}>
      <polyline points={at.join(" ")} />
    </svg>
  );
}
