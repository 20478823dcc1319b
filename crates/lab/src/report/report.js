// Draws the report from the JSON in #data. No network, no state beyond this page.
(() => {
  'use strict';
  const data = JSON.parse(document.getElementById('data').textContent);
  const $ = (id) => document.getElementById(id);

  // Okabe and Ito's palette, safe for colour-blind readers; black turns light on a dark page. Every scheme
  // also has a symbol and a dash of its own, so that no chart depends on colour.
  const COLOURS = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', 'ink', '#B8A800'];
  const SYMBOLS = ['circle', 'square', 'diamond', 'triangle-up', 'triangle-down', 'cross', 'x', 'star', 'pentagon'];
  const DASHES = ['solid', '7px,3px', '2px,2px', '9px,3px,2px,3px', '12px,4px'];
  const OUTLINES = {
    square: '2,2 12,2 12,12 2,12', diamond: '7,0.5 13.5,7 7,13.5 0.5,7', 'triangle-up': '7,1 13.5,12.5 0.5,12.5',
    'triangle-down': '7,13 13.5,1.5 0.5,1.5', cross: '5,1 9,1 9,5 13,5 13,9 9,9 9,13 5,13 5,9 1,9 1,5 5,5',
    x: '3.5,0.8 7,4.2 10.5,0.8 13.2,3.5 9.8,7 13.2,10.5 10.5,13.2 7,9.8 3.5,13.2 0.8,10.5 4.2,7 0.8,3.5',
    star: '7,0.5 8.7,5 13.5,5.2 9.7,8.2 11,12.9 7,10.2 3,12.9 4.3,8.2 0.5,5.2 5.3,5',
    pentagon: '7,0.8 13.3,5.4 10.9,12.8 3.1,12.8 0.7,5.4',
  };

  const hidden = new Set();
  let printing = false;
  const narrow = () => !printing && window.innerWidth < 640;
  const coarse = window.matchMedia('(pointer: coarse)').matches;
  const place = (scheme) => Math.max(0, data.schemes.indexOf(scheme));
  // A shorthand where there is one, as in tables on the command line.
  const named = (scheme) => data.short_names[scheme] || scheme;
  const linkRate = new Set(data.runs.filter((run) => run.deployment && run.deployment.link_rate).map((run) => run.scheme));
  const marked = (scheme) => named(scheme) + (linkRate.has(scheme) ? ' †' : '');
  const symbol = (scheme) => SYMBOLS[place(scheme) % SYMBOLS.length];
  const dash = (scheme) => DASHES[Math.floor(place(scheme) / COLOURS.length) % DASHES.length];

  let theme = {};
  function readTheme() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ['card', 'ink', 'soft', 'line', 'grid', 'capacity', 'accent']) {
      theme[name] = style.getPropertyValue('--' + name).trim();
    }
  }
  function colour(scheme) {
    const chosen = COLOURS[place(scheme) % COLOURS.length];
    return chosen === 'ink' ? theme.ink : chosen;
  }

  // Numbers for people: three digits that matter.
  function show(value, unit = '') {
    if (value === null || value === undefined) return '–';
    const size = Math.abs(value);
    const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
    return value.toFixed(digits) + unit;
  }
  // Plotly takes labels for a small subset of HTML.
  const escape = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
  const percent = (share) => (share === null || share === undefined ? '–' : (100 * share).toFixed(1));

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === 'onclick') made.onclick = value;
      else if (value !== null && value !== undefined) made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }
  function icon(scheme) {
    const space = 'http://www.w3.org/2000/svg';
    const svg = document.createElementNS(space, 'svg');
    for (const [name, value] of [['width', 14], ['height', 14], ['viewBox', '0 0 14 14'], ['aria-hidden', 'true']]) {
      svg.setAttribute(name, value);
    }
    const points = OUTLINES[symbol(scheme)];
    const shape = document.createElementNS(space, points ? 'polygon' : 'circle');
    if (points) shape.setAttribute('points', points);
    else for (const [name, value] of [['cx', 7], ['cy', 7], ['r', 6]]) shape.setAttribute(name, value);
    shape.setAttribute('fill', colour(scheme));
    svg.append(shape);
    return svg;
  }

  // --- Plotly, set up once -------------------------------------------------------------------------------------

  const config = () => ({
    responsive: true, displaylogo: false, displayModeBar: coarse || narrow() ? false : 'hover',
    modeBarButtonsToRemove: ['select2d', 'lasso2d', 'autoScale2d', 'toggleSpikelines'],
    doubleClick: 'reset', scrollZoom: false,
    toImageButtonOptions: { format: 'svg', filename: 'brakelight' },
  });
  const font = () => ({ family: getComputedStyle(document.body).fontFamily, size: 13, color: theme.ink });
  const base = () => ({
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', font: font(), showlegend: false,
    hoverlabel: { bgcolor: theme.card, bordercolor: theme.line, font: { color: theme.ink, size: 13 } },
    dragmode: coarse ? false : 'zoom', modebar: { bgcolor: 'rgba(0,0,0,0)', color: theme.soft, activecolor: theme.accent },
  });
  const axis = (more) => ({
    gridcolor: theme.grid, linecolor: theme.line, zerolinecolor: theme.line, tickcolor: theme.line, automargin: true,
    ...more, title: { text: more.title || '', standoff: 8, font: { size: 13, color: theme.soft } },
  });
  // Ticks of a logarithmic axis at 1, 2 and 5, so that a short range still shows a few.
  function logTicks(low, high, steps = [1, 2, 5]) {
    const ticks = [];
    for (let power = -4; power < 8; power++) {
      for (const step of steps) {
        const tick = step * 10 ** power;
        if (tick >= low && tick <= high) ticks.push(tick);
      }
    }
    const few = ticks.length > 9 ? ticks.filter((tick) => Math.abs(Math.log10(tick) % 1) < 1e-9) : ticks;
    return { tickmode: 'array', tickvals: few, ticktext: few.map((tick) => String(+tick.toPrecision(3))) };
  }
  const PAPER = 690;
  const draw = (id, traces, layout) => Plotly.react($(id), traces, { ...base(), ...layout, ...(printing ? { width: PAPER } : { autosize: true, width: undefined }) }, { ...config(), responsive: !printing });
  const widthOf = (id) => (printing ? PAPER : $(id).clientWidth);

  // An empty chart rather than none: Plotly may still be busy with the one before.
  const drawNothing = (id) => draw(id, [], {
    height: 90, margin: { l: 10, r: 10, t: 10, b: 10 }, xaxis: { visible: false }, yaxis: { visible: false },
    annotations: [{ text: 'Every scheme is hidden.', showarrow: false, xref: 'paper', yref: 'paper', x: 0.5, y: 0.5, font: { color: theme.soft } }],
  });

  // --- Scatter -------------------------------------------------------------------------------------------------

  const DELAYS = {
    queueing: { label: 'queueing, p95', axis: '95th percentile of the queueing delay, ms', short: 'p95 queueing delay, ms', interval: true, overall: 'p95', of: (run) => run.queueing && run.queueing.p95 },
    one_way: { label: 'one-way, p95', axis: '95th percentile of the one-way delay, ms', short: 'p95 one-way delay, ms', overall: 'one_way_p95', of: (run) => run.one_way && run.one_way.p95 },
    mean: { label: 'queueing, mean', axis: 'Mean queueing delay, ms', short: 'mean queueing delay, ms', of: (run) => run.queueing && run.queueing.mean },
  };
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const geometric = (values) => (values.every((value) => value > 0) ? Math.exp(mean(values.map(Math.log))) : 0);

  // Over several traces: geometric means, and of delays only as ratios to the reference on the same trace.
  function points(trace, delay) {
    const base = (run) => {
      const other = data.runs.find((one) => one.scheme === data.reference && one.trace === run.trace);
      return other ? delay.of(other) : null;
    };
    return data.schemes.filter((scheme) => !hidden.has(scheme)).flatMap((scheme) => {
      const runs = data.runs.filter((run) => run.scheme === scheme && (trace === null || run.trace === trace) && delay.of(run));
      if (!runs.length) return [];
      const together = trace === null;
      if (together && !runs.every((run) => base(run) > 0)) return [];
      const run = runs[0], sure = !together && run.interval95;
      const ratio = together && delay.overall && (data.overall.find((row) => row.scheme === scheme) || {})[delay.overall];
      return [{
        scheme, runs, x: Math.max(0.01, ratio ? ratio.value : together ? geometric(runs.map((one) => delay.of(one) / base(one))) : delay.of(run)),
        y: 100 * geometric(runs.map((one) => one.utilization)),
        across: ratio ? ratio.interval95 : sure && delay.interval ? sure.p95_ms : null, up: sure ? sure.utilization.map((end) => 100 * end) : null,
      }];
    });
  }
  // How far an interval reaches beyond a point, as Plotly has error bars.
  const bars = (all, value, interval) => ({
    type: 'data', symmetric: false, thickness: 1, width: 3, color: theme.soft,
    array: all.map((p) => (p[interval] ? Math.max(0, p[interval][1] - p[value]) : 0)),
    arrayminus: all.map((p) => (p[interval] ? Math.max(0, p[value] - p[interval][0]) : 0)),
  });
  function frontier(all) {
    const best = all.filter((a) => !all.some((b) => b !== a && b.x <= a.x && b.y >= a.y && (b.x < a.x || b.y > a.y)));
    return best.sort((a, b) => a.x - b.x);
  }
  // Puts each name where it covers neither a point nor another name.
  function label(all, across, down, width) {
    const boxes = all.map((p) => ({ l: across(p.x) - 8, r: across(p.x) + 8, t: down(p.y) - 8, b: down(p.y) + 8 }));
    return all.map((p) => {
      const x = across(p.x), y = down(p.y), w = 7.4 * named(p.scheme).length + 4, h = 16;
      const options = [
        ['middle right', x + 10, y - h / 2], ['middle left', x - 10 - w, y - h / 2], ['top center', x - w / 2, y - 10 - h],
        ['bottom center', x - w / 2, y + 10], ['top right', x + 4, y - 8 - h], ['top left', x - 4 - w, y - 8 - h],
        ['bottom right', x + 4, y + 8], ['bottom left', x - 4 - w, y + 8],
      ];
      const cost = ([, l, t]) => {
        const covered = boxes.reduce((sum, box) => sum
          + Math.max(0, Math.min(l + w, box.r) - Math.max(l, box.l)) * Math.max(0, Math.min(t + h, box.b) - Math.max(t, box.t)), 0);
        return covered + (l < 0 || l + w > width ? 1000 : 0);
      };
      const best = options.reduce((a, b) => (cost(b) < cost(a) ? b : a));
      boxes.push({ l: best[1], r: best[1] + w, t: best[2], b: best[2] + h });
      return best[0];
    });
  }

  function drawScatter() {
    const chosen = $('scatter-trace').value;
    const trace = /^\d+$/.test(chosen) ? data.traces[+chosen] : null;
    const delay = DELAYS[$('scatter-delay').value];
    const all = chosen === 'every' ? [] : points(trace, delay);
    const together = trace === null && chosen !== 'every';
    const unit = together ? ' × ' + named(data.reference) : ' ms';
    const titled = (text) => (together ? text.replace(', ms', ', ÷ ' + named(data.reference)) : text);
    const small = chosen === 'every'
      ? data.runs.filter((run) => !hidden.has(run.scheme) && delay.of(run))
        .map((run) => ({ scheme: run.scheme, trace: run.trace, x: Math.max(0.01, delay.of(run)), y: 100 * run.utilization }))
      : [];
    const xs = [...all, ...small].map((p) => p.x), ys = [...all, ...small].map((p) => p.y);
    if (!xs.length) { drawNothing('scatter'); return; }
    let low = Math.min(...xs), high = Math.max(...xs);
    const spare = Math.max(1.25, (high / low) ** 0.1);
    low /= spare; high *= spare;
    const room = Math.max(3, 0.12 * (Math.max(...ys) - Math.min(...ys)));
    const bottom = Math.max(0, Math.min(...ys) - room), top = Math.min(104, Math.max(...ys) + room);
    const height = narrow() ? 380 : printing ? (crowded ? 270 : 360) : 500;
    const width = widthOf('scatter') - 80;
    const across = (x) => (width * (Math.log(high) - Math.log(x))) / (Math.log(high) - Math.log(low));
    const down = (y) => ((height - 70) * (top - y)) / (top - bottom);
    const line = frontier(all);
    const marker = (scheme, size, opacity) => ({
      symbol: symbol(scheme), size, color: colour(scheme), opacity, line: { width: size > 8 ? 1 : 0, color: theme.card },
    });
    const traces = [{
      x: line.map((p) => p.x), y: line.map((p) => p.y), mode: 'lines', hoverinfo: 'skip', name: 'frontier',
      line: { color: theme.soft, width: 1.5, dash: 'dash' },
    }];
    for (const scheme of new Set(small.map((p) => p.scheme))) {
      const own = small.filter((p) => p.scheme === scheme);
      traces.push({
        x: own.map((p) => p.x), y: own.map((p) => p.y), mode: 'markers', marker: marker(scheme, 9, 0.8), name: scheme,
        text: own.map((p) => `${named(scheme)} on ${p.trace}`), hovertemplate: '%{text}<br>%{y:.1f} %, %{x:.1f} ms<extra></extra>',
      });
    }
    const where = label(all, across, down, width);
    traces.push({
      x: all.map((p) => p.x), y: all.map((p) => p.y), mode: 'markers+text', name: 'schemes', cliponaxis: false,
      text: all.map((p) => named(p.scheme)), textposition: where, textfont: { size: 13, color: all.map((p) => theme.ink) },
      marker: {
        symbol: all.map((p) => symbol(p.scheme)), size: 14, color: all.map((p) => colour(p.scheme)),
        line: { width: 1, color: theme.card },
      },
      error_x: bars(all, 'x', 'across'), error_y: bars(all, 'y', 'up'),
      hovertemplate: `<b>%{text}</b><br>%{y:.1f} % of the capacity<br>%{x:.3~g}${escape(unit)}<extra></extra>`,
    });
    draw('scatter', traces, {
      height, margin: { l: 60, r: 20, t: 16, b: 54 },
      xaxis: axis({ title: titled(narrow() ? delay.short : delay.axis) + (narrow() ? ' → less' : ' (less is to the right)'), type: 'log', range: [Math.log10(high), Math.log10(low)], fixedrange: coarse, zeroline: false, ...logTicks(low, high) }),
      yaxis: axis({ title: 'Utilization, %', range: [bottom, top], fixedrange: coarse, zeroline: false }),
      annotations: [{ text: 'better ↗', x: 1, y: 1, xref: 'paper', yref: 'paper', xanchor: 'right', yanchor: 'top', showarrow: false, font: { color: theme.soft, size: 13 } }],
    });
  }

  // --- Bars ----------------------------------------------------------------------------------------------------

  const shorten = (name) => (name.length > 18 ? name.slice(0, 17) + '…' : name);

  // Twenty-six schemes side by side are a cloud: they stand in a table, two numbers a cell, shaded.
  const MOST_BARS = 8;
  function fillMatrix() {
    const shade = (share) => `background: color-mix(in srgb, var(--accent) ${(34 * Math.max(0, Math.min(1, share))).toFixed(0)}%, transparent)`;
    const delays = data.runs.map((run) => run.queueing && run.queueing.p95).filter((delay) => delay > 0).map(Math.log);
    const low = Math.min(...delays), high = Math.max(...delays);
    const find = (row, trace) => data.runs.find((run) => run.scheme === row.scheme && run.trace === trace);
    const columns = data.traces.flatMap((trace) => [
      {
        title: shorten(trace), unit: 'used, %', key: (row) => (find(row, trace) || {}).utilization, show: (row) => { const run = find(row, trace); return run ? (100 * run.utilization).toFixed(0) : '–'; },
        style: (row) => { const run = find(row, trace); return run ? shade(run.utilization) : null; },
      },
      {
        title: '', label: `${trace}, p95, ms`, unit: 'p95, ms', up: true, key: (row) => { const run = find(row, trace); return run && run.queueing && run.queueing.p95; },
        style: (row) => { const run = find(row, trace); return run && run.queueing ? shade(1 - (Math.log(Math.max(1e-9, run.queueing.p95)) - low) / (high - low || 1)) : null; },
      },
    ]);
    fillTable('matrix', [
      { title: 'scheme', text: true, scheme: true, up: true, key: (row) => named(row.scheme), show: (row) => marked(row.scheme) }, ...columns,
    ], data.overall, null);
  }

  function drawBars() {
    const shown = data.schemes.filter((scheme) => !hidden.has(scheme));
    const phone = narrow();
    const find = (scheme, trace) => data.runs.find((run) => run.scheme === scheme && run.trace === trace);
    const panel = (scheme, value, template, number) => {
      const values = data.traces.map((trace) => { const run = find(scheme, trace); return run ? value(run) : null; });
      const names = data.traces.map(shorten);
      const across = phone ? { x: values, y: names, orientation: 'h' } : { x: names, y: values };
      return {
        type: 'bar', ...across, offsetgroup: scheme, marker: { color: colour(scheme), line: { width: 0 } }, name: scheme, customdata: data.traces, xaxis: phone ? 'x' + number : 'x', yaxis: phone ? 'y' : 'y' + number,
        hovertemplate: `<b>${named(scheme)}</b> on %{customdata}<br>${template}<extra></extra>`,
      };
    };
    const delays = data.runs.map((run) => run.queueing && run.queueing.p95).filter((delay) => delay > 0);
    const low = Math.max(0.01, Math.min(...delays) / 1.5), high = Math.max(...delays) * 1.2;
    const log = { type: 'log', range: [Math.log10(low), Math.log10(high)], ...logTicks(low, high, phone ? [1] : [1, 2, 5]) };
    const value = phone ? '%{x:.1f}' : '%{y:.1f}';
    const shownTraces = shown.flatMap((scheme) => [
      panel(scheme, (run) => 100 * run.utilization, value + ' % of the capacity', ''),
      panel(scheme, (run) => run.queueing && run.queueing.p95, 'p95 queueing delay ' + value + ' ms', '2'),
    ]);
    const share = { title: 'Utilization, %', range: [0, 100], fixedrange: coarse };
    const wait = { title: 'p95 queueing delay, ms', fixedrange: coarse, ...log };
    const names = { type: 'category', fixedrange: true, showgrid: false };
    const layout = phone
      ? {
          height: 90 + data.traces.length * Math.max(60, 13 * shown.length + 14), barmode: 'group', bargap: 0.18,
          margin: { l: 10, r: 8, t: 10, b: 44 },
          yaxis: axis({ ...names, autorange: 'reversed', tickangle: -90 }),
          xaxis: axis({ ...share, domain: [0, 0.46], title: 'Utilization, %' }),
          xaxis2: axis({ ...wait, domain: [0.54, 1], title: 'p95 delay, ms' }),
        }
      : {
          height: printing ? 440 : 520, barmode: 'group', bargap: 0.2, margin: { l: 64, r: 16, t: 10, b: 40 },
          xaxis: axis({ ...names, anchor: 'y2' }),
          yaxis: axis({ ...share, domain: [0.54, 1] }),
          yaxis2: axis({ ...wait, domain: [0, 0.46] }),
        };
    draw('bars', shownTraces, layout);
  }

  // --- Over time -----------------------------------------------------------------------------------------------

  const pictures = data.pictures;
  const groups = [...new Set(pictures.map((picture) => picture.group))];
  let range = null, listening = false, drawn = 1;

  function chosenPictures() {
    const group = groups[+$('series-trace').value] ?? groups[0];
    const shown = pictures.filter((picture) => picture.group === group && !hidden.has(picture.scheme));
    const schemes = [...new Set(shown.map((picture) => picture.scheme))];
    $('series-more').hidden = schemes.length <= MOST_ROWS;
    if (schemes.length <= MOST_ROWS || $('series-more').getAttribute('aria-pressed') === 'true') return shown.map(unpack);
    const few = new Set([...new Set([data.reference, ...byPower])].filter((scheme) => schemes.includes(scheme)).slice(0, MOST_ROWS));
    $('series-more').textContent = `${few.size} of ${schemes.length} schemes: show all`;
    return shown.filter((picture) => few.has(picture.scheme)).map(unpack);
  }
  // Rows of charts before the reader asks for more: the reference scheme and those of most power.
  const MOST_ROWS = 6;
  const byPower = data.overall.length ? data.overall.map((row) => row.scheme) : data.schemes;
  // The points of all lines are two bytes each, deflated: a span says where a line's are.
  let words = null;
  async function inflate() {
    const bytes = Uint8Array.from(atob(data.points), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
    const view = new DataView(await new Response(stream).arrayBuffer());
    words = Uint16Array.from({ length: view.byteLength / 2 }, (_, i) => view.getUint16(2 * i, true));
  }
  const points16 = ({ start, count, low, step }) => Array.from(words.subarray(start, start + count), (word) => (word === 65535 ? null : low + step * word));
  function unpack(picture) {
    if (picture.capacity.count === undefined) return picture;
    const lines = [...picture.lower, ...picture.flows.flatMap((flow) => flow.lower)];
    for (const line of lines) line.values = points16(line.values);
    for (const flow of picture.flows) flow.throughput = flow.throughput && points16(flow.throughput);
    picture.capacity = points16(picture.capacity);
    picture.throughput = points16(picture.throughput);
    return picture;
  }
  function fillLower() {
    const select = $('series-lower'), before = select.value;
    const names = [...new Set(pictures.flatMap((p) => [...p.lower, ...p.flows.flatMap((flow) => flow.lower)]).map((line) => line.name))];
    select.replaceChildren(...names.map((name) => element('option', { value: name }, name)));
    if (names.includes(before)) select.value = before;
  }
  // A line of more points than a screen has room for is only noise: bins are merged until one takes a few
  // pixels, and split again when the reader zooms in.
  function merging(shown) {
    const [first, last] = range || spanOf(shown);
    const bins = Math.max(...shown.map((p) => (last - first) / p.bin_s));
    const room = Math.max(80, (widthOf('series') - 80) / 2);
    return 2 ** Math.max(0, Math.ceil(Math.log2(bins / room)));
  }
  function merge(values, factor) {
    if (factor === 1) return values;
    const merged = [];
    for (let i = 0; i < values.length; i += factor) {
      const there = values.slice(i, i + factor).filter((value) => value !== null);
      merged.push(there.length ? mean(there) : null);
    }
    return merged;
  }
  const spanOf = (shown) => [
    Math.min(...shown.map((p) => p.start_s)),
    +Math.max(...shown.map((p) => p.start_s + p.bin_s * p.capacity.length)).toFixed(3),
  ];

  function drawSeries() {
    const shown = chosenPictures();
    if (!shown.length) { drawNothing('series'); return; }
    const lower = $('series-lower').value;
    const phone = narrow();
    const factor = merging(shown);
    drawn = factor;
    // A flow is named where there are others, on its link or elsewhere.
    const named = (p) => p.flows.length > 1 || (p.links > 1 && p.flows.length > 0);
    const crowded = shown.some(named);
    const legend = crowded ? 20 : 0;
    const upperHeight = phone ? 96 : 118, lowerHeight = phone ? 60 : 72, inner = 16, outer = (phone ? 46 : 40) + legend, bottom = 46, head = 28 + legend;
    const rows = shown.length;
    const plotHeight = rows * (upperHeight + inner + lowerHeight) + (rows - 1) * outer;
    const traces = [], layout = {
      height: head + plotHeight + bottom, margin: { l: phone ? 46 : 62, r: phone ? 6 : 14, t: head, b: bottom }, annotations: [], hovermode: 'x',
    };
    // One scale for all runs of a link; another link may be a hundred times as fast.
    const peakOf = (place) => Math.max(...shown.filter((p) => p.place === place).flatMap((p) => [...p.capacity, ...p.throughput]));
    const linesOf = (p) => {
      const own = p.lower.filter((line) => line.name === lower);
      return own.length ? own.map((line) => ({ ...line, flow: '' }))
        : p.flows.flatMap((flow) => flow.lower.filter((line) => line.name === lower).map((line) => ({ ...line, flow: flow.name, i: flow.place })));
    };
    const values = shown.flatMap(linesOf).flatMap((line) => line.values).filter((value) => value !== null && Number.isFinite(value));
    const unit = (shown.flatMap(linesOf)[0] || { unit: '' }).unit;
    const log = unit === 'ms';
    const positive = values.filter((value) => value > 0);
    const low = log && positive.length ? Math.max(0.5, Math.min(...positive) / 1.2) : Math.min(0, ...values);
    const high = (values.length ? Math.max(...values) : 1) * 1.1 || 1;
    const lowerAxis = log
      ? { type: 'log', range: [Math.log10(Math.min(low, high / 10)), Math.log10(high)], tickmode: 'array', tickvals: [1, 10, 100, 1000, 10000], ticktext: ['1', '10', '100', '1000', '10⁴'] }
      : { range: [low, high], nticks: 3 };
    shown.forEach((p, row) => {
      const top = plotHeight - row * (upperHeight + inner + lowerHeight + outer);
      const upper = row === 0 ? '' : 2 * row + 1, under = 2 * row + 2;
      const ink = colour(p.scheme);
      const line = (values, name, extra) => ({
        // The last value holds to the end of its bin.
        x0: +p.start_s.toFixed(4), dx: p.bin_s * factor, y: held(merge(values, factor)), name, mode: 'lines', line: { width: 1.4, color: ink, shape: 'hv' }, ...extra,
      });
      traces.push(line(p.capacity, 'capacity', {
        yaxis: 'y' + upper, fill: 'tozeroy', fillcolor: theme.capacity, line: { width: 0, color: theme.capacity, shape: 'hv' },
        hovertemplate: 'capacity %{y:.2f}<extra></extra>',
      }));
      const several = named(p);
      if (!several) {
        traces.push(line(p.throughput, 'throughput', { yaxis: 'y' + upper, hovertemplate: 'throughput %{y:.2f}<extra></extra>' }));
      } else {
        p.flows.forEach((flow) => traces.push(line(flow.throughput, flow.name, {
          yaxis: 'y' + upper, hovertemplate: flow.name + ' %{y:.2f}<extra></extra>',
          line: { width: 1.4, color: flowColour(flow.place), dash: flowDash(flow.place), shape: 'hv' },
        })));
      }
      for (const part of linesOf(p)) {
        const own = part.flow && several;
        traces.push(line(part.values, lower, {
          yaxis: 'y' + under, connectgaps: false, hovertemplate: `${own ? part.flow + ' ' : ''}%{y:.3~g} ${part.unit}<extra></extra>`,
          line: { width: 1.4, color: own ? flowColour(part.i) : ink, dash: own ? flowDash(part.i) : 'solid', shape: 'hv' },
        }));
      }
      layout['yaxis' + upper] = axis({ domain: [(top - upperHeight) / plotHeight, top / plotHeight], range: [0, peakOf(p.place) * 1.05], nticks: 4, fixedrange: true, title: 'Mbit/s', zeroline: false });
      layout['yaxis' + under] = axis({ domain: [(top - upperHeight - inner - lowerHeight) / plotHeight, (top - upperHeight - inner) / plotHeight], fixedrange: true, title: unit, zeroline: false, ...lowerAxis });
      const facts = p.facts.filter((_, i) => !phone || i !== 1).join(' · ');
      const note = (text, yshift) => layout.annotations.push({
        text, x: 0, y: top / plotHeight, xref: 'paper', yref: 'paper', xanchor: 'left', yanchor: 'bottom', yshift, showarrow: false, align: 'left', font: { size: phone ? 12 : 13 },
      });
      note(`<b><span style="color:${several ? theme.ink : ink}">${escape(p.label)}</span></b>  <span style="color:${theme.soft}">${facts}</span>`, 3 + (several ? legend : 0));
      if (several) note(p.flows.map((flow) => `<b><span style="color:${flowColour(flow.place)}">— ${escape(flow.name)}</span></b>`).join('   '), 3);
    });
    layout.xaxis = axis({ title: 'Time, s', anchor: 'y' + 2 * rows, range: range || spanOf(shown), autorange: false, showspikes: !coarse, spikemode: 'across', spikethickness: 1, spikedash: 'dot', spikecolor: theme.soft, zeroline: false, fixedrange: coarse, hoverformat: '.2f' });
    draw('series', traces, layout);
    if (listening) return;
    listening = true;
    // A zoom by dragging lives on when schemes are hidden or another quantity is chosen.
    $('series').on('plotly_relayout', (change) => {
      if ('xaxis.range[0]' in change) range = [+change['xaxis.range[0]'], +change['xaxis.range[1]']];
      if ('xaxis.range' in change) range = change['xaxis.range'].map(Number);
      const now = chosenPictures();
      if (now.length && merging(now) !== drawn) drawSeries();
    });
  }
  const held = (values) => [...values, values[values.length - 1]];
  const flowColour = (i) => { const c = COLOURS[i % COLOURS.length]; return c === 'ink' ? theme.ink : c; };
  const flowDash = (i) => DASHES[Math.floor(i / COLOURS.length) % DASHES.length];

  function zoom(change) {
    const shown = chosenPictures();
    if (!shown.length) return;
    const [first, last] = spanOf(shown);
    const [from, to] = range || [first, last];
    let [a, b] = change(from, to);
    if (b - a >= last - first) { range = null; } else {
      if (a < first) { b += first - a; a = first; }
      if (b > last) { a -= b - last; b = last; }
      range = [a, b];
    }
    Plotly.relayout($('series'), { 'xaxis.range': range || [first, last] });
  }

  // --- Tables --------------------------------------------------------------------------------------------------

  const orders = {};
  const shownHere = (row) => !hidden.has(row.scheme) && (row.trace === undefined || !$('only-trace').value || row.trace === $('only-trace').value);
  function fillTable(id, columns, every, sorted) {
    const rows = every.filter(shownHere);
    let order = orders[id] && orders[id].by < columns.length ? orders[id] : sorted;
    const body = element('tbody');
    const heads = columns.map((column, i) => element('th', { class: [column.text ? 'text' : '', i === 0 ? 'first' : ''].join(' ').trim() || null, scope: 'col' },
      element('button', { onclick: () => { orders[id] = order = { by: i, up: order && order.by === i ? !order.up : !!column.up }; fill(); }, 'aria-label': column.label }, column.title,
        column.unit ? element('small', {}, column.unit) : '')));
    function fill() {
      const key = order ? columns[order.by].key : () => 0;
      const sign = order && order.up ? 1 : -1;
      const last = (value) => value === null || value === undefined;
      const inOrder = rows.map((row, i) => [row, i]).sort(([a, i], [b, j]) => {
        const x = key(a), y = key(b);
        if (last(x) || last(y)) return last(x) - last(y) || i - j;
        return (typeof x === 'string' ? x.localeCompare(y) : x - y) * sign || i - j;
      });
      heads.forEach((head, i) => (order && i === order.by ? head.setAttribute('aria-sort', order.up ? 'ascending' : 'descending') : head.removeAttribute('aria-sort')));
      body.replaceChildren(...inOrder.map(([row]) => element('tr', {}, ...columns.map((column, i) => {
        const cell = element(i === 0 ? 'th' : 'td', { scope: i === 0 ? 'row' : null, style: column.style ? column.style(row) : null, class: [column.text ? 'text' : '', i === 0 ? 'first' : ''].join(' ').trim() || null });
        if (column.scheme) cell.append(icon(row.scheme));
        cell.append(column.show ? column.show(row) : show(column.key(row)));
        if (column.bar) {
          const share = column.bar(row);
          cell.append(element('span', { class: 'bar' }, element('i', { style: `width:${Math.max(0, Math.min(100, share)).toFixed(1)}%;background:${colour(row.scheme)}` })));
        }
        return cell;
      }))));
    }
    fill();
    $(id).replaceChildren(element('thead', {}, element('tr', {}, ...heads)), body);
  }

  // What to deploy on one's own link, by the one thing that can be changed.
  function adviceBlocks() {
    $('advice-section').hidden = !data.advice.length;
    $('advice').replaceChildren(...data.advice.map((block) => element('div', { class: 'advice' },
      element('h3', {}, block.title),
      element('p', { class: 'lead' }, block.about),
      element('dl', {}, ...block.rows.flatMap(([name, lines]) => [
        element('dt', {}, name),
        element('dd', {}, name === 'set' ? element('pre', {}, lines.join('\n')) : element('span', {}, ...lines.flatMap((line, i) => (i ? [element('br'), line] : [line])))),
      ])))));
  }
  // What to deploy: three rows at most, which a phone shows below each other.
  const CHANGES = { senders: 'senders only', queue: "the router's queue only", both: 'both' };
  function decisionTable() {
    const decision = data.decision;
    $('decision-section').hidden = !decision;
    if (!decision) return;
    const today = decision.today && named(decision.today);
    const candidate = (it) => element('span', {}, icon(it.scheme), marked(it.scheme));
    // The value, and from where to where its interval goes.
    const between = (it) => (it ? show(it.value) + (it.interval95 ? ` (${it.interval95.map((end) => show(end)).join(' – ')})` : '') + same(it) : '–');
    const columns = [
      ['you can change', (it) => CHANGES[it.change], 'text'],
      ['best', (it) => candidate(it.best), 'text'],
      ['next', (it) => (it.next ? candidate(it.next) : '–'), 'text'],
      ['ahead, in power', (it) => between(it.ahead)],
      ...(today ? [
        [`throughput ÷ ${today}`, (it) => (it.best.scheme === decision.today ? '1' : between(it.throughput))],
        [`queueing p95 ÷ ${today}`, (it) => (it.best.scheme === decision.today ? '1' : between(it.p95))],
      ] : []),
    ];
    $('decision').classList.add('decision');
    $('decision').replaceChildren(
      element('thead', {}, element('tr', {}, ...columns.map(([title, , kind]) => element('th', { scope: 'col', class: kind }, title)))),
      element('tbody', {}, ...decision.choices.map((it) => element('tr', {}, ...columns.map(([title, cell, kind], i) =>
        element(i === 0 ? 'th' : 'td', { scope: i === 0 ? 'row' : null, class: kind, 'data-label': title }, element('span', {}, cell(it))))))),
    );
    const sure = decision.choices.some((it) => it.ahead && it.ahead.interval95);
    $('decision-remarks').textContent = [...(sure ? ['In parentheses: 95 % intervals over the runs.'] : []), ...data.remarks].join(' ');
  }
  // `4.18 ± 0.10`, or `4.18 (3.9–9.1)` where one side is more than twice the other and more than a quarter of the value; with ≈ where the difference is not significant.
  const digits = (value) => (Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2);
  const reaching = (value, [low, high]) => {
    const [narrow, wide] = [value - low, high - value].sort((a, b) => a - b);
    const [reach, ...ends] = [wide, low, high].map((number) => number.toFixed(digits(value)));
    return wide > 2 * narrow && wide > Math.abs(value) / 4 ? ` (${ends.join('–')})` : ` ± ${reach}`;
  };
  const within = (value, interval) => (value === null || value === undefined ? '–' : value.toFixed(digits(value)) + (interval ? reaching(value, interval) : ''));
  const same = (ratio) => (ratio && ratio.interval95 && ratio.interval95[0] <= 1 && ratio.interval95[1] >= 1 ? ' ≈' : '');
  const sure = (ratio) => (ratio ? within(ratio.value, ratio.interval95) + same(ratio) : '–');

  const crowded = data.schemes.length > MOST_BARS;
  function tables() {
    if (crowded && !$('bars-section').hidden) fillMatrix();
    const worst = Math.max(...data.overall.map((row) => (row.p95 ? row.p95.value : 0)));
    const reference = data.reference, than = reference && named(reference);
    const value = (ratio) => (ratio ? ratio.value : null);
    const ratio = (row, it) => (row.scheme === reference ? '1' : sure(it));
    if (data.overall.length > 1 || data.traces.length > 1) {
      $('answer-section').hidden = false;
      $('answer-lead').textContent = `Geometric means over ${data.traces.length} trace${data.traces.length === 1 ? '' : 's'}, sorted by power. `
        + (reference ? `Ratios to ${than}, run by run with the same seed and start in the trace, with 95 % confidence intervals; ≈: no significant difference.` : '');
      fillTable('answer', [
        { title: 'scheme', text: true, scheme: true, up: true, key: (r) => named(r.scheme), show: (r) => marked(r.scheme) },
        { title: 'utilization', unit: '%', key: (r) => r.utilization, show: (r) => percent(r.utilization), bar: (r) => 100 * r.utilization },
        { title: 'power', unit: 'best = 1', key: (r) => r.power },
        ...(reference ? [
          { title: 'throughput', unit: `÷ ${than}`, key: (r) => value(r.throughput), show: (r) => ratio(r, r.throughput) },
          { title: 'queueing p95', unit: `÷ ${than}`, up: true, key: (r) => value(r.p95), show: (r) => ratio(r, r.p95), bar: (r) => (100 * (value(r.p95) || 0)) / worst },
          { title: 'one-way p95', unit: `÷ ${than}`, up: true, key: (r) => value(r.one_way_p95), show: (r) => ratio(r, r.one_way_p95) },
        ] : []),
        { title: 'loss', unit: 'most, %', up: true, key: (r) => r.loss_percent },
        { title: 'Pareto', unit: 'frontier', text: true, key: (r) => (r.pareto ? 1 : 0), show: (r) => (r.pareto ? 'yes' : '') },
      ], data.overall, { by: 2, up: false });
    }
    const spread = data.runs.some((run) => run.spread);
    const between = (pair) => (pair ? `${show(pair[0])} – ${show(pair[1])}` : '–');
    $('table-section').hidden = !data.runs.length;
    fillTable('table', [
      { title: 'scheme', text: true, scheme: true, up: true, key: (r) => named(r.scheme), show: (r) => marked(r.scheme) },
      { title: 'trace', text: true, up: true, key: (r) => r.trace, show: (r) => r.trace },
      { title: 'capacity', unit: 'Mbit/s', key: (r) => r.capacity_mbps },
      { title: 'throughput', unit: 'Mbit/s', key: (r) => r.throughput_mbps, show: (r) => within(r.throughput_mbps, !r.fairness && r.interval95 && r.interval95.throughput_mbps) + same(r.versus && r.versus.throughput) },
      ...(spread ? [{ title: 'throughput', unit: 'low – high', key: (r) => r.spread && r.spread.throughput_mbps[0], show: (r) => between(r.spread && r.spread.throughput_mbps) }] : []),
      { title: 'goodput', unit: 'Mbit/s', key: (r) => r.goodput_mbps },
      { title: 'utilization', unit: '%', key: (r) => r.utilization, show: (r) => percent(r.utilization) },
      ...['mean', 'p50', 'p95', 'p99', 'max'].map((name) => ({
        title: 'queueing', unit: name + ', ms', up: true, key: (r) => r.queueing && r.queueing[name],
        ...(name === 'p95' ? { show: (r) => within(r.queueing && r.queueing.p95, r.interval95 && r.interval95.p95_ms) + same(r.versus && r.versus.p95) } : {}),
      })),
      ...(spread ? [{ title: 'p95', unit: 'low – high', up: true, key: (r) => r.spread && r.spread.p95_ms[0], show: (r) => between(r.spread && r.spread.p95_ms) }] : []),
      { title: 'one-way', unit: 'p95, ms', up: true, key: (r) => r.one_way && r.one_way.p95 },
      { title: 'RTT', unit: 'p95, ms', up: true, key: (r) => r.rtt && r.rtt.p95 },
      ...(data.runs.some((run) => run.responsiveness) ? [
        { title: 'working latency', unit: 'p98, ms', up: true, key: (r) => r.responsiveness && r.responsiveness.working_latency_p98_ms },
        { title: 'responsiveness', unit: 'RPM', key: (r) => r.responsiveness && r.responsiveness.rpm },
      ] : []),
      ...(data.runs.some((run) => run.second_half) ? [
        { title: 'second half', unit: 'used, %', key: (r) => r.second_half && r.second_half.utilization, show: (r) => percent(r.second_half && r.second_half.utilization) },
        { title: 'second half', unit: 'p95, ms', up: true, key: (r) => r.second_half && r.second_half.p95_ms },
      ] : []),
      { title: 'loss', unit: '%', up: true, key: (r) => r.loss_percent },
      { title: 'sent again', unit: 'packets', up: true, key: (r) => r.retransmitted_packets, show: (r) => String(r.retransmitted_packets) },
      ...(data.runs.some((run) => run.setup) ? [{ title: 'buffer', text: true, key: (r) => (r.setup ? r.setup.buffer : null), show: (r) => (r.setup ? r.setup.buffer : '') }] : []),
      ...(data.runs.some((run) => run.modes) ? [{
        title: 'two modes', unit: 'runs: Mbit/s', text: true, key: (r) => (r.modes ? 1 : 0),
        show: (r) => (r.modes || []).map((mode) => `${mode.n}: ${show(mode.throughput_mbps)}`).join(', '),
      }] : []),
      ...(data.runs.some((run) => run.fairness) ? [
        { title: 'own', unit: 'Mbit/s', key: (r) => r.fairness && r.fairness.own_mbps },
        { title: 'competitor', unit: 'Mbit/s', key: (r) => r.fairness && r.fairness.competitor_mbps },
        { title: 'share', unit: '%', key: (r) => r.fairness && r.fairness.share, show: (r) => percent(r.fairness && r.fairness.share) },
        { title: 'harm', unit: 'throughput, %', up: true, key: (r) => r.fairness && r.fairness.harm_throughput, show: (r) => percent(r.fairness && r.fairness.harm_throughput) },
        { title: 'harm', unit: 'p95, %', up: true, key: (r) => r.fairness && r.fairness.harm_delay, show: (r) => percent(r.fairness && r.fairness.harm_delay) },
      ] : []),
      ...(data.runs.some((run) => run.jain !== null) ? [{ title: 'Jain', key: (r) => r.jain, show: (r) => (r.jain === null ? '–' : r.jain.toFixed(3)) }] : []),
    ], data.runs, { by: 1, up: true });
  }

  function flowTable() {
    const flows = data.runs.flatMap((run) => run.flows.map((flow) => ({ ...flow, scheme: run.scheme, trace: run.trace })));
    $('flows-section').hidden = !flows.length;
    const several = data.runs.length > 1;
    fillTable('flows', [
      { title: 'flow', text: true, up: true, key: (r) => r.name, show: (r) => r.name },
      ...(several ? [
        { title: 'scheme', text: true, up: true, key: (r) => named(r.scheme), show: (r) => marked(r.scheme) },
        { title: 'trace', text: true, up: true, key: (r) => r.trace, show: (r) => r.trace },
      ] : []),
      { title: 'controller', text: true, up: true, key: (r) => r.controller, show: (r) => r.controller },
      { title: 'throughput', unit: 'Mbit/s', key: (r) => r.throughput_mbps },
      { title: 'goodput', unit: 'Mbit/s', key: (r) => r.goodput_mbps },
      { title: 'RTT', unit: 'p50, ms', up: true, key: (r) => r.rtt && r.rtt.p50 },
      { title: 'RTT', unit: 'p95, ms', up: true, key: (r) => r.rtt && r.rtt.p95 },
      { title: 'loss', unit: '%', up: true, key: (r) => r.loss_percent },
      { title: 'sent again', unit: 'packets', up: true, key: (r) => r.retransmitted_packets, show: (r) => String(r.retransmitted_packets) },
    ], flows, { by: 0, up: true });
  }

  // --- Fairness ------------------------------------------------------------------------------------------------

  function fairnessTable() {
    const runs = data.runs.filter((run) => run.fairness && shownHere(run));
    const section = $('fairness-section');
    section.hidden = !data.runs.some((run) => run.fairness);
    if (section.hidden) return;
    const against = (data.runs.find((run) => run.setup && run.setup.against) || { setup: { against: 'a competitor' } }).setup.against;
    const traces = new Set(runs.map((run) => run.trace)).size;
    $('fairness-lead').textContent = `Each scheme shares the queue with one flow of ${against}. Means over ${traces} trace${traces === 1 ? '' : 's'}. `
      + `Harm: how much less throughput ${against} gets, and how much longer its packets wait, than with a second flow of ${against}.`;
    const average = (own, key) => { const there = own.map((run) => run.fairness[key]).filter((value) => value !== null && value !== undefined); return there.length ? mean(there) : null; };
    const rows = data.schemes.map((scheme) => ({ scheme, own: runs.filter((run) => run.scheme === scheme) })).filter((row) => row.own.length)
      .map(({ scheme, own }) => ({ scheme, share: average(own, 'share'), harm: average(own, 'harm_throughput'), delay: average(own, 'harm_delay'), jain: mean(own.map((run) => run.jain).filter((jain) => jain !== null)) }));
    fillTable('fairness', [
      { title: 'scheme', text: true, scheme: true, up: true, key: (r) => named(r.scheme), show: (r) => marked(r.scheme) },
      { title: 'its share', unit: '% of what both carried', key: (r) => r.share, show: (r) => percent(r.share), bar: (r) => 100 * r.share },
      { title: 'from fair', unit: 'percentage points', up: true, key: (r) => Math.abs(r.share - 0.5), show: (r) => (100 * Math.abs(r.share - 0.5)).toFixed(1) },
      { title: 'Jain', unit: '1 = equal', key: (r) => r.jain, show: (r) => (Number.isFinite(r.jain) ? r.jain.toFixed(3) : '–') },
      { title: 'harm, throughput', unit: '% of its own', up: true, key: (r) => r.harm, show: (r) => percent(r.harm) },
      { title: 'harm, delay', unit: '% longer', up: true, key: (r) => r.delay, show: (r) => percent(r.delay) },
    ], rows, { by: 4, up: true });
  }

  // --- Applications --------------------------------------------------------------------------------------------

  // What an application's number is called, and in what a person counts it: `ms` becomes s beyond a second.
  const PEOPLE = {
    completion_ms: 'the transfer took', completion: 'a transfer took', response: 'an answer took', frame_delay: 'a frame took', rtt: 'a round trip took',
    flows_started: 'transfers begun', flows_completed: 'transfers finished', responses: 'answers', updates: 'updates', updates_lost_percent: 'updates lost',
    bitrate_mbps: 'picture quality', switches: 'quality changes', stalls: 'stalls', stall_ms: 'stalled for', stall_percent: 'of the time stalled',
    startup_ms: 'started after', freezes: 'freezes', freeze_ms: 'frozen for', freeze_percent: 'of the time frozen', quality_mos: 'opinion score (1 to 5)', frames_shown: 'frames shown',
    frames_late_percent: 'frames too late', frames_skipped_percent: 'frames not sent', offered_mbps: 'offered', delivered_mbps: 'delivered', backlog_kb: 'waiting at the end',
  };
  const PARTS = { mean: 'mean', p50: 'half within', p95: '19 in 20 within', p99: '99 in 100 within' };
  const UNITS = [['_percent', ' %'], ['_mbps', ' Mbit/s'], ['_kb', ' kB'], ['_bytes', ' B']];
  function heading(key) {
    const [, base, part] = /^(.*)_ms_(mean|p50|p95|p99)$/.exec(key) || [];
    if (base) return [PEOPLE[base] || base.replace(/_/g, ' '), PARTS[part]];
    return [PEOPLE[key] || key.replace(/_(ms|s|percent|mbps|kb|bytes)$/, '').replace(/_/g, ' '), ''];
  }
  function forPeople(key, value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return '–';
    if (value === 0) return '0';
    if (/_ms($|_)/.test(key)) return value >= 1000 ? show(value / 1000, ' s') : show(value, ' ms');
    const unit = UNITS.find(([end]) => key.endsWith(end));
    return unit ? show(value, unit[1]) : Number.isInteger(value) ? String(value) : show(value);
  }
  // Whether less of it is better.
  const less = (key) => /_ms($|_)|stall|freeze|late|lost|skipped|switches|backlog/.test(key);

  function applicationTable() {
    const flows = data.runs.flatMap((run) => run.flows.filter((flow) => flow.application).map((flow) => ({ ...flow, scheme: run.scheme, trace: run.trace })));
    $('applications-section').hidden = !flows.length;
    if (!flows.length) return;
    // Flows of one kind of application have the same numbers: a table for each kind.
    const kinds = new Map();
    for (const flow of flows) kinds.set(kindOf(flow), [...(kinds.get(kindOf(flow)) || []), flow]);
    const several = data.runs.length > 1;
    $('applications').replaceChildren(...[...kinds.keys()].map((_, i) => element('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': `Table: applications, ${i + 1}` }, element('table', { id: `applications-${i}` }))));
    [...kinds.values()].forEach((own, i) => {
      const keys = [...new Set(own.flatMap((flow) => Object.keys(flow.application)))];
      fillTable(`applications-${i}`, [
        { title: 'flow', text: true, up: true, key: (r) => r.name, show: (r) => r.name },
        ...(several ? [
          { title: 'scheme', text: true, up: true, key: (r) => named(r.scheme), show: (r) => marked(r.scheme) },
          { title: 'trace', text: true, up: true, key: (r) => r.trace, show: (r) => r.trace },
        ] : []),
        ...keys.map((key) => ({ title: heading(key)[0], unit: heading(key)[1], up: less(key), key: (r) => r.application[key], show: (r) => forPeople(key, r.application[key]) })),
      ], own, { by: several ? 2 : 0, up: true });
    });
  }
  const MARKS = { stalls: 'video', freezes: 'call', responses: 'requests', flows_started: 'short flows', updates: 'game', offered_mbps: 'rate' };
  const kindOf = (flow) => MARKS[Object.keys(MARKS).find((key) => key in flow.application)] || 'other';

  // --- The page ------------------------------------------------------------------------------------------------

  // What is hidden is hidden everywhere: in charts and in tables.
  function filters() {
    if (data.schemes.length < 2) return;
    $('filters').hidden = false;
    $('schemes').replaceChildren(...data.schemes.map((scheme) => element('button', {
      class: 'chip', 'aria-pressed': String(!hidden.has(scheme)), title: `Hide or show ${named(scheme)}`,
      onclick: (event) => { if (!hidden.delete(scheme)) hidden.add(scheme); event.currentTarget.setAttribute('aria-pressed', String(!hidden.has(scheme))); apply(); },
    }, icon(scheme), named(scheme))));
    const frontier = new Set(data.overall.filter((row) => row.pareto).map((row) => row.scheme));
    const some = (id, keep) => {
      $(id).onclick = () => { hidden.clear(); data.schemes.filter((scheme) => !keep(scheme)).forEach((scheme) => hidden.add(scheme)); filters(); apply(); };
    };
    some('all-schemes', () => true);
    some('no-schemes', () => false);
    some('pareto-schemes', (scheme) => frontier.has(scheme));
    $('pareto-schemes').hidden = !frontier.size;
  }
  function apply() { tables(); flowTable(); applicationTable(); fairnessTable(); charts(); }
  function charts() {
    if (!$('scatter-section').hidden) drawScatter();
    if (!$('bars-section').hidden && !crowded) drawBars();
    if (!$('series-section').hidden && words) drawSeries();
  }
  const options = (select, names) => select.replaceChildren(...names.map(([value, name]) => element('option', { value }, name)));

  function begin() {
    readTheme();
    $('title').textContent = data.title;
    $('setting').replaceChildren(...data.setting.map(([name, value]) => element('li', {}, name + ' ', element('b', {}, value))));
    adviceBlocks();
    decisionTable();
    $('caveats').hidden = !data.caveats.length;
    $('caveats').replaceChildren(...data.caveats.map((caveat) => element('li', {}, caveat)));
    $('notes-section').hidden = !data.notes.length;
    $('notes').replaceChildren(...data.notes.map((note) => element('li', {}, note)));
    $('origin').replaceChildren(...data.origin.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]));
    const several = data.schemes.length > 1;
    $('scatter-section').hidden = !several;
    $('bars-section').hidden = !(several && data.traces.length > 1);
    $(crowded ? 'bars' : 'matrix-scroll').hidden = true;
    $('series-section').hidden = !pictures.length;
    document.documentElement.classList.toggle('many', data.schemes.length > 4);
    options($('scatter-trace'), [...(data.traces.length > 1 ? [...(data.reference ? [['mean', 'all, geometric means']] : []), ['every', 'all, every row']] : []), ...data.traces.map((trace, i) => [String(i), trace])]);
    options($('scatter-delay'), Object.entries(DELAYS).map(([value, { label: name }]) => [value, name]));
    options($('series-trace'), groups.map((group, i) => [String(i), group]));
    $('series-trace-label').hidden = groups.length < 2;
    options($('only-trace'), [['', 'all'], ...data.traces.map((trace) => [trace, trace])]);
    $('only-trace-label').hidden = data.traces.length < 2;
    fillLower();
    filters();
    tables();
    flowTable();
    applicationTable();
    fairnessTable();

    $('scatter-trace').onchange = $('scatter-delay').onchange = drawScatter;
    $('series-trace').onchange = () => { range = null; drawSeries(); };
    $('series-lower').onchange = drawSeries;
    $('series-more').onclick = () => {
      const all = $('series-more').getAttribute('aria-pressed') !== 'true';
      $('series-more').setAttribute('aria-pressed', String(all));
      $('series-more').textContent = 'show fewer';
      drawSeries();
    };
    $('only-trace').onchange = () => { tables(); flowTable(); applicationTable(); fairnessTable(); };
    $('in').onclick = () => zoom((a, b) => [a + (b - a) / 4, b - (b - a) / 4]);
    $('out').onclick = () => zoom((a, b) => [a - (b - a) / 2, b + (b - a) / 2]);
    $('earlier').onclick = () => zoom((a, b) => [a - (b - a) / 2, b - (b - a) / 2]);
    $('later').onclick = () => zoom((a, b) => [a + (b - a) / 2, b + (b - a) / 2]);
    $('whole').onclick = () => zoom(() => [-Infinity, Infinity]);
    let wasNarrow = narrow();
    window.addEventListener('resize', () => { if (narrow() !== wasNarrow) { wasNarrow = narrow(); charts(); } });
    const redraw = () => { readTheme(); filters(); tables(); flowTable(); applicationTable(); fairnessTable(); charts(); };
    window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
    // Paper has the light colours and the width of an A4 page between its margins.
    const print = (now) => () => { document.documentElement.classList.toggle('printing', now); printing = now; redraw(); };
    window.addEventListener('beforeprint', print(true));
    window.addEventListener('afterprint', print(false));
    document.documentElement.dataset.shown = 'yes';
  }

  // Words and tables at once; charts when the browser has shown them, those over time last.
  begin();
  const painted = () => new Promise((resume) => { requestAnimationFrame(() => setTimeout(resume)); setTimeout(resume, 300); });
  painted().then(async () => {
    charts();
    await painted();
    if (pictures.length) {
      await inflate();
      drawSeries();
    }
    document.documentElement.dataset.ready = 'yes';
  });
})();
