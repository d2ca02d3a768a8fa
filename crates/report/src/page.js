'use strict';
// Values where the pointer is. Without this script the titles within charts show them.
const tip = document.createElement('div');
tip.className = 'tip';
tip.setAttribute('aria-hidden', 'true');
document.body.append(tip);
for (const title of document.querySelectorAll('svg title')) {
  title.parentNode.dataset.tip = title.textContent;
  title.remove();
}
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const heats = new Map();
for (const heat of document.querySelectorAll('.heat')) {
  const { width, most, levels, prefix, lines, columns } = heat.dataset;
  heats.set(heat.querySelector('img'), {
    width: +width, most: +most.replace(/,/g, ''), levels: bytes(levels), prefix, lines: lines.split('|'), columns: columns.split('|'),
  });
}
function heatTip(image, event) {
  const heat = heats.get(image);
  const box = image.getBoundingClientRect();
  const column = Math.min(heat.width - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * heat.width)));
  const line = Math.min(heat.lines.length - 1, Math.max(0, Math.floor((event.clientY - box.top) / box.height * heat.lines.length)));
  const value = heat.levels[line * heat.width + column] / 255 * heat.most;
  return `${heat.prefix}${heat.lines[line]} · ${heat.columns[column]}: ${value.toPrecision(2)}`;
}
function nearest(chart, event) {
  let best = null, least = Infinity;
  for (const point of chart.querySelectorAll('circle')) {
    const box = point.getBoundingClientRect();
    const across = event.clientX - box.left - box.width / 2, up = event.clientY - box.top - box.height / 2;
    if (across * across + up * up < least) { least = across * across + up * up; best = point; }
  }
  return best;
}
let lit = null;
function show(event) {
  const target = event.target instanceof Element ? event.target : null;
  const chart = target && target.closest('svg.lines');
  const named = chart ? nearest(chart, event) : target && target.closest('[data-tip]');
  const text = heats.has(target) ? heatTip(target, event) : named && named.dataset.tip;
  if (lit) lit.classList.remove('lit');
  lit = chart ? named : null;
  if (lit) lit.classList.add('lit');
  tip.style.display = text ? 'block' : 'none';
  if (!text) return;
  tip.textContent = text;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(6, Math.min(event.clientX + 12, document.documentElement.clientWidth - box.width - 6)) + 'px';
  tip.style.top = Math.max(6, event.clientY - box.height - 12) + 'px';
}
addEventListener('pointermove', show);
addEventListener('pointerdown', show);
addEventListener('scroll', () => { tip.style.display = 'none'; });
