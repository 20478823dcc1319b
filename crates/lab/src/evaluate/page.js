// Draws an evaluation from the JSON in #data. No network, no state beyond this page.
(() => {
  'use strict';
  const data = JSON.parse(document.getElementById('data').textContent);
  const $ = (id) => document.getElementById(id);

  function show(value) {
    if (value === null || value === undefined) return '–';
    const size = Math.abs(value);
    return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
  }
  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }
  const SPACE = 'http://www.w3.org/2000/svg';
  function shape(tag, attributes) {
    const made = document.createElementNS(SPACE, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }

  // Seeds, bound and baseline on one line that begins at zero.
  function strip(point, atMost) {
    const width = 180, height = 22, edge = 6;
    const values = [...point.by_seed, point.bound, point.baseline ?? 0];
    const most = Math.max(...values, 1e-12) * 1.08, least = Math.min(0, ...values);
    const x = (value) => edge + ((value - least) / (most - least)) * (width - 2 * edge);
    const low = Math.min(...point.by_seed), high = Math.max(...point.by_seed);
    const svg = shape('svg', { viewBox: `0 0 ${width} ${height}`, class: 'strip', role: 'img', preserveAspectRatio: 'xMinYMid meet' });
    const words = `${show(low)} to ${show(high)} over the seeds, ${atMost ? 'at most' : 'at least'} ${show(point.bound)} allowed`;
    svg.append(Object.assign(shape('title', {}), { textContent: words }));
    const bound = x(point.bound);
    const [from, to] = atMost ? [bound, width] : [0, bound];
    svg.append(shape('rect', { x: from, y: 0, width: Math.max(0, to - from), height, fill: 'var(--grid)' }));
    svg.append(shape('line', { x1: 0, x2: width, y1: 11, y2: 11, stroke: 'var(--line)' }));
    svg.append(shape('line', { x1: bound, x2: bound, y1: 0, y2: height, stroke: 'var(--ink)', 'stroke-width': 1.5 }));
    if (point.baseline !== null) {
      svg.append(shape('circle', { cx: x(point.baseline), cy: 11, r: 5, fill: 'none', stroke: 'var(--soft)', 'stroke-width': 1.5 }));
    }
    for (const value of point.by_seed) {
      svg.append(shape('circle', { cx: x(value), cy: 11, r: 2.5, fill: 'var(--accent)', 'fill-opacity': 0.7 }));
    }
    return svg;
  }

  function points(criterion) {
    const head = element('tr', {});
    for (const [name, text] of [['point', true], ['measured'], [criterion.at_most ? 'at most' : 'at least'], ['baseline'], ['within, 95 %']]) {
      head.append(element('th', text ? { class: 'text' } : {}, name));
    }
    const body = element('tbody');
    for (const point of criterion.points) {
      const within = point.within ? `${show(point.within[0])} to ${show(point.within[1])}` : '–';
      const row = element('tr', {}, element('td', { class: 'text' }, point.place || '–'));
      for (const value of [show(point.measured), show(point.bound), show(point.baseline), within]) row.append(element('td', {}, value));
      body.append(row);
    }
    return element('div', { class: 'scroll' }, element('table', {}, element('thead', {}, head), body));
  }

  function line(criterion) {
    const deciding = criterion.decides === null ? null : criterion.points[criterion.decides];
    const verdict = element('span', { class: 'verdict' }, criterion.verdict);
    const what = element('span', { class: 'what' }, criterion.criterion, element('small', {}, `${criterion.id} · ${criterion.title}`));
    const number = element('span', { class: 'number' });
    const summary = element('summary', {}, verdict, what, number);
    if (deciding) {
      const bound = `${criterion.at_most ? 'at most' : 'at least'} ${show(deciding.bound)}`;
      const beside = deciding.baseline === null ? '' : `, baseline ${show(deciding.baseline)}`;
      number.append(element('b', {}, show(deciding.measured)), element('small', {}, bound + beside));
      summary.append(strip(deciding, criterion.at_most));
    }
    const inside = element('div', { class: 'inside' });
    inside.append(element('p', {}, criterion.asked));
    if (criterion.why) inside.append(element('p', {}, element('b', {}, 'Why this bound: '), `${criterion.why}.`));
    for (const remark of criterion.remarks) inside.append(element('p', {}, remark));
    if (criterion.points.length) inside.append(points(criterion));
    if (criterion.again) {
      inside.append(element('p', {}, 'Run it again: ', element('code', {}, criterion.again)));
    }
    const kind = criterion.verdict === 'not applicable' ? 'not' : criterion.verdict;
    const details = element('details', { class: `criterion ${kind}` }, summary, inside);
    if (criterion.worse) details.open = true;
    return details;
  }

  $('title').textContent = data.title;
  for (const [name, value] of data.setting) $('setting').append(element('li', {}, `${name} `, element('b', {}, value)));
  for (const [name, value] of data.origin) $('origin').append(element('dt', {}, name), element('dd', {}, value));
  if (data.against) $('setting').append(element('li', {}, 'compared with ', element('b', {}, data.against)));
  for (const scheme of data.schemes) {
    const head = element('div', { class: 'head' }, element('h2', {}, scheme.name));
    const section = element('section', {}, head, element('p', { class: 'lead' }, scheme.counts));
    for (const criterion of scheme.criteria) section.append(line(criterion));
    $('schemes').append(section);
  }
})();
