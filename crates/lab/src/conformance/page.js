// Draws clouds and envelopes from the JSON in #data. No network, no state beyond this page.
(() => {
  'use strict';
  const data = JSON.parse(document.getElementById('data').textContent);
  const $ = (id) => document.getElementById(id);

  function show(value, digits = 2) {
    return value === null || value === undefined ? '–' : value.toFixed(digits);
  }
  function signed(value) {
    if (value === null || value === undefined) return '–';
    const size = Math.abs(value);
    return (value > 0 ? '+' : '') + value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
  }
  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }
  const SPACE = 'http://www.w3.org/2000/svg';
  function shape(tag, attributes, text) {
    const made = document.createElementNS(SPACE, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // Throughput upwards, round-trip time to the right.
  function clouds(cell, name) {
    const width = 320, height = 220, left = 44, right = 8, top = 8, bottom = 34;
    const sides = [['reference', cell.reference, 'var(--accent)'], ['own', cell.own, '#d55e00']];
    const all = sides.flatMap(([, cloud]) => [...cloud.points, ...cloud.envelope.flat()]);
    const svg = shape('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img' });
    svg.append(shape('title', {}, `${name} and ${data.reference} at ${cell.place}: conformance ${show(cell.conformance)}`));
    if (!all.length) return svg;
    const range = (axis) => {
      const values = all.map((point) => point[axis]);
      const low = Math.min(...values), high = Math.max(...values), room = 0.04 * (high - low) || 1;
      return [low - room, high + room];
    };
    const [[low, high], [early, late]] = [range(0), range(1)];
    const x = (ms) => left + ((ms - early) / (late - early)) * (width - left - right);
    const y = (mbps) => height - bottom - ((mbps - low) / (high - low)) * (height - top - bottom);
    svg.append(shape('rect', { x: left, y: top, width: width - left - right, height: height - top - bottom, fill: 'none', stroke: 'var(--line)' }));
    const words = (at, text, anchor) => shape('text', { x: at[0], y: at[1], 'text-anchor': anchor, 'font-size': 11, fill: 'var(--soft)' }, text);
    svg.append(words([left - 4, top + 10], show(high, 1), 'end'), words([left - 4, height - bottom], show(Math.max(low, 0), 1), 'end'));
    svg.append(words([left, height - bottom + 13], show(early, 0), 'start'), words([width - right, height - bottom + 13], show(late, 0), 'end'));
    svg.append(words([(left + width) / 2, height - 6], 'round-trip time (ms)', 'middle'));
    svg.append(shape('text', { transform: `translate(12 ${(height - bottom) / 2}) rotate(-90)`, 'text-anchor': 'middle', 'font-size': 11, fill: 'var(--soft)' }, 'Mbit/s'));
    for (const [, cloud, colour] of sides) {
      for (const hull of cloud.envelope) {
        const corners = hull.map(([mbps, ms]) => `${x(ms).toFixed(1)},${y(mbps).toFixed(1)}`).join(' ');
        svg.append(shape('polygon', { points: corners, fill: colour, 'fill-opacity': 0.18, stroke: colour, 'stroke-width': 1.2 }));
      }
      for (const [mbps, ms] of cloud.points) {
        svg.append(shape('circle', { cx: x(ms).toFixed(1), cy: y(mbps).toFixed(1), r: 1.6, fill: colour, 'fill-opacity': 0.6 }));
      }
    }
    return svg;
  }

  function link(cell, name, isWorst) {
    const made = element('figure', { class: isWorst ? 'link worst' : 'link' });
    const caption = element('figcaption', {}, element('b', {}, show(cell.conformance)), ` (${show(cell.moved)} moved) · ${cell.place}`);
    caption.append(element('small', {}, `${signed(cell.throughput)} Mbit/s, ${signed(cell.delay)} ms; areas overlap by ${show(cell.overlap)}`));
    if (cell.note) caption.append(element('small', {}, cell.note));
    made.append(caption, clouds(cell, name));
    return made;
  }

  $('title').textContent = data.title;
  for (const [name, value] of data.setting) $('setting').append(element('li', {}, `${name} `, element('b', {}, value)));
  for (const [name, value] of data.origin) $('origin').append(element('dt', {}, name), element('dd', {}, value));
  for (const scheme of data.schemes) {
    const section = element('section', {}, element('h2', {}, scheme.name));
    for (const line of scheme.verdict) section.append(element('p', {}, `${line}.`));
    section.append(element('p', { class: 'key' }, element('span', { class: 'own' }, scheme.name), element('span', { class: 'reference' }, data.reference)));
    const measured = scheme.cells.map((cell) => cell.conformance ?? Infinity);
    const worst = measured.indexOf(Math.min(...measured));
    section.append(element('div', { class: 'links' }, ...scheme.cells.map((cell, place) => link(cell, scheme.name, place === worst))));
    $('schemes').append(section);
  }
})();
