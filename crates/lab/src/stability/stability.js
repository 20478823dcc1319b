// Draws the stability map from the JSON in #data.
(() => {
  'use strict';
  const data = JSON.parse(document.getElementById('data').textContent);
  const doc = data.document;
  const $ = (id) => document.getElementById(id);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
  const points = doc.points;
  const distinct = (values) => [...new Set(values)];
  // What differs between the paper's rule and the one that tunes itself.
  const rule = doc.variant === 'adaptive' ? {
    title: 'Self-tuning ABC: its stability, by model and by packets',
    axis: 'tau / loop delay', ratio: (point) => point.tau_over_loop_delay,
    varied: 'loop delay', varied_ms: (point) => point.loop_delay_ms,
    explained: 'Each mark is a router with this many flows that assumes this loop delay. Right of the dotted line the model is unstable; left of the dashed one a steady queue is proven.',
    equation: 'the fluid model of docs/abc-adaptive.md',
    meaning: 'time from a mark to the packets that it brings, as the router has it',
    limits: [[doc.theorem_limit, 'dash', '1.7 ', 'right'], [doc.linear_limit, 'dot', ' 2.78', 'left']],
    stable: (ratio) => ratio <= doc.linear_limit,
  } : {
    title: "ABC's stability, by model and by packets",
    axis: 'delta / tau', ratio: (point) => point.delta_over_tau,
    varied: 'delta', varied_ms: (point) => point.delta_ms,
    explained: 'Each mark is a router with this many flows and this delta. Left of the lines the model is unstable.',
    equation: "equation 13 of the paper's appendix C",
    meaning: 'time in which the router drains a queue above its target',
    limits: [[doc.linear_limit, 'dot', '2/π ', 'right'], [doc.theorem_limit, 'dash', ' 2/3', 'left']],
    stable: (ratio) => ratio >= doc.linear_limit,
  };
  const ratios = distinct(points.map(rule.ratio));
  const flows = distinct(points.map((point) => point.flows));
  const show = (ms) => (ms >= 100 ? ms.toFixed(0) : ms >= 10 ? ms.toFixed(1) : ms.toFixed(2));
  const swings = {
    model: (point) => point.fluid.high_ms - point.fluid.low_ms,
    packets: (point) => point.packets.p95_ms - point.packets.p5_ms,
  };
  const MODEL = '#D55E00', PACKETS = '#0072B2';

  function element(tag, text, className) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  $('title').textContent = rule.title;
  for (const id of ['explained', 'axis', 'equation', 'varied', 'meaning']) $(id).textContent = rule[id];
  const constants = doc.variant === 'adaptive' ? [] : [['eta', doc.eta], ['target', `${doc.target_ms} ms`]];
  for (const [name, value] of [
    ['link', `${doc.rate_mbps} Mbit/s`], ['round trip', `${doc.rtt_ms} ms`], ...constants, ['runs of', `${doc.duration_s} s`]]) {
    const item = element('li', name + ' ');
    item.append(element('b', value));
    $('setting').append(item);
  }
  for (const [name, value] of Object.entries(doc.origin)) {
    $('origin').append(element('dt', name), element('dd', value === null ? '–' : String(value)));
  }

  const font = () => ({ family: getComputedStyle(document.body).fontFamily, size: 13, color: css('ink') });
  const axis = (title, more) => ({
    gridcolor: css('grid'), linecolor: css('line'), zerolinecolor: css('line'), automargin: true,
    title: { text: title, standoff: 8, font: { size: 13, color: css('soft') } }, ...more,
  });
  const base = () => ({
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', font: font(),
    hoverlabel: { bgcolor: css('card'), bordercolor: css('line'), font: { color: css('ink'), size: 13 } },
  });
  const config = { responsive: true, displaylogo: false, displayModeBar: false };

  // Viridis: dark to bright for everyone, colour-blind or not; size says it again.
  function drawMap() {
    const most = Math.max(1, ...points.flatMap((point) => Object.values(swings).map((swing) => swing(point)))) / doc.rtt_ms * 100;
    const panel = (name, swing, number) => {
      const percent = points.map((point) => 100 * swing(point) / doc.rtt_ms);
      return {
        type: 'scatter', mode: 'markers', name, xaxis: 'x' + number, yaxis: 'y' + number,
        x: points.map(rule.ratio), y: points.map((point) => point.flows),
        customdata: points.map((_, index) => index),
        text: points.map((point, index) => `${point.flows} flows, ${rule.varied} ${show(rule.varied_ms(point))} ms<br>swing ${show(swing(point))} ms (${percent[index].toFixed(1)} %)`),
        hovertemplate: '%{text}<extra>' + name + '</extra>',
        marker: {
          size: percent.map((value) => 9 + 21 * Math.sqrt(Math.min(1, value / most))), color: percent, cmin: 0, cmax: most,
          colorscale: 'Viridis', line: { color: css('ink'), width: 1 }, showscale: number === '2',
          colorbar: { title: { text: 'swing, %<br>of round trip' }, thickness: 14, outlinewidth: 0 },
        },
        showlegend: false,
      };
    };
    const limits = ['x', 'x2'].flatMap((which, index) => rule.limits.map(([at, dash]) => ({
      type: 'line', xref: which, yref: index ? 'y2 domain' : 'y domain', x0: at, x1: at, y0: 0, y1: 1, line: { color: css('soft'), width: 1.5, dash },
    })));
    const x = { type: 'log', tickmode: 'array', tickvals: ratios, ticktext: ratios.map(String), tickangle: 0 };
    const y = { type: 'log', tickmode: 'array', tickvals: flows, ticktext: flows.map(String) };
    // Side by side, or one above the other on a phone.
    const stacked = window.innerWidth < 700;
    const places = stacked
      ? { height: 640, x: [[0, 1], [0, 1]], y: [[0.58, 1], [0, 0.42]] }
      : { height: 440, x: [[0, 0.46], [0.54, 1]], y: [[0, 1], [0, 1]] };
    const middle = (panel) => (places.x[panel][0] + places.x[panel][1]) / 2;
    const heading = (text, panel) => ({ text: `<b>${text}</b>`, showarrow: false, xref: 'paper', yref: 'paper', x: middle(panel), y: places.y[panel][1], yshift: 34, xanchor: 'center' });
    const note = (which, panel, at, text, place) => ({ text, showarrow: false, xref: which, yref: 'paper', x: Math.log10(at), y: places.y[panel][1], yshift: 16, xanchor: place, font: { size: 11, color: css('soft') } });
    Plotly.react('map', [panel('model', swings.model, ''), panel('packets', swings.packets, '2')], {
      ...base(), height: places.height, margin: { l: 56, r: 20, t: 48, b: 50 }, shapes: limits,
      xaxis: axis(rule.axis, { ...x, domain: places.x[0] }), yaxis: axis('flows', { ...y, domain: places.y[0] }),
      xaxis2: axis(rule.axis, { ...x, domain: places.x[1], anchor: 'y2' }), yaxis2: axis('flows', { ...y, domain: places.y[1], anchor: 'x2' }),
      annotations: [heading('Fluid model', 0), heading('Packets', 1),
        ...rule.limits.flatMap(([at, , text, place]) => [note('x', 0, at, text, place), note('x2', 1, at, text, place)])],
    }, config);
    $('map').removeAllListeners('plotly_click');
    $('map').on('plotly_click', (event) => {
      const point = points[event.points[0].customdata];
      $('flows').value = point.flows;
      $('ratio').value = rule.ratio(point);
      drawSeries();
    });
  }

  function drawSeries() {
    const index = points.findIndex((point) => point.flows === +$('flows').value && rule.ratio(point) === +$('ratio').value);
    const point = points[index];
    $('facts').textContent = `The model settles at ${show(point.fluid.rest_ms)} ms and ends between ${show(point.fluid.low_ms)} and ${show(point.fluid.high_ms)} ms; `
      + `packets: mean ${show(point.packets.mean_ms)} ms, ${show(point.packets.p5_ms)} to ${show(point.packets.p95_ms)} ms, utilization ${(100 * point.packets.utilization).toFixed(1)} %.`;
    const line = (name, values, color, dash) => ({
      type: 'scatter', mode: 'lines', name, x: values.map((_, bin) => bin * data.bin_s), y: values, line: { color, width: 1.6, dash },
      hovertemplate: '%{y:.1f} ms at %{x:.1f} s<extra>' + name + '</extra>',
    });
    const [model, packets] = data.series_ms[index];
    const end = Math.max(model.length, 1) * data.bin_s;
    Plotly.react('series', [line('packets', packets, PACKETS, 'solid'), line('model', model, MODEL, 'dash')], {
      ...base(), height: 320, margin: { l: 56, r: 20, t: 30, b: 48 }, legend: { orientation: 'h', x: 0, y: 1.14 },
      xaxis: axis('time, s', { range: [0, end] }),
      yaxis: axis('queueing delay, ms', { rangemode: 'tozero' }),
    }, config);
  }

  function fillTable() {
    const head = element('tr');
    for (const [name, unit] of [['flows', ''], [rule.axis, ''], [rule.varied, 'ms'], ['model settles at', 'ms'], ['model ends between', 'ms'], ['model', ''],
      ['packets, mean', 'ms'], ['packets, p5 to p95', 'ms'], ['utilization', '%'], ['packets', '']]) {
      const cell = element('th', name);
      cell.append(element('small', unit));
      head.append(cell);
    }
    $('table').append(head);
    for (const point of points) {
      const row = element('tr');
      for (const value of [point.flows, rule.ratio(point), show(rule.varied_ms(point)), show(point.fluid.rest_ms),
        `${show(point.fluid.low_ms)} – ${show(point.fluid.high_ms)}`, point.fluid.verdict, show(point.packets.mean_ms),
        `${show(point.packets.p5_ms)} – ${show(point.packets.p95_ms)}`, (100 * point.packets.utilization).toFixed(1), point.packets.verdict]) {
        row.append(element('td', String(value)));
      }
      $('table').append(row);
    }
  }

  for (const [id, values, chosen] of [['flows', flows, flows[flows.length - 1]], ['ratio', ratios, ratios.find((ratio) => !rule.stable(ratio)) ?? ratios[0]]]) {
    for (const value of values) {
      const option = element('option', String(value));
      option.value = value;
      $(id).append(option);
    }
    $(id).value = chosen;
    $(id).onchange = drawSeries;
  }
  drawMap();
  drawSeries();
  fillTable();
  document.documentElement.dataset.ready = 'yes';
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { drawMap(); drawSeries(); });
})();
