// Link utilisation on the topology: drawn link by link, or as a matrix for each tier and direction.
(() => {
  "use strict";
  const percent = (u) => pw.number(u * 100, 3) + " %";

  pw.topology = (parent, topology) => {
    if (topology.mode === "graph") graph(parent, topology);
    else matrices(parent, topology);
  };

  function scale(parent) {
    const row = pw.element("div", "scale");
    const canvas = pw.element("canvas");
    [canvas.width, canvas.height] = [160, 12];
    const g = canvas.getContext("2d");
    for (let x = 0; x < 160; x++) { g.fillStyle = pw.heat(x / 159); g.fillRect(x, 0, 1, 12); }
    row.append("0 %", canvas, "100 % busy");
    parent.append(row);
  }

  function graph(parent, { nodes, links }) {
    const card = pw.card(parent, "Link utilisation",
      "The half of a line beside a node is the link that leaves it, coloured by the fraction of the run it was busy. "
      + "Red dashes: packets were dropped.", true);
    if (links.length === 0) { card.append(pw.element("p", "note", "No links recorded.")); return; }
    scale(card);
    const switchTiers = new Set(nodes.filter((n) => n.kind !== "host").map((n) => n.tier));
    const isSwitch = (n) => nodes[n] && nodes[n].kind !== "host";
    const direct = switchTiers.size === 1 && links.some((l) => isSwitch(l.from) && isSwitch(l.to));
    if (direct) ring(card, nodes, links);
    else tiered(card, nodes, links);
  }

  // A link's half beside the node it leaves, and what there is to say of it.
  function halfLink(svg, nodes, link, a, mid, width) {
    const line = pw.svg("line", { x1: a.x, y1: a.y, x2: mid.x, y2: mid.y, stroke: pw.heat(link.utilisation),
      "stroke-width": width, class: "halfway" });
    pw.tip(line, () => `${nodes[link.from].name} to ${nodes[link.to].name}: ${percent(link.utilisation)} busy\n`
      + `largest queue ${pw.show("bytes", link.max_queue_bytes)}, ${link.pauses} pauses, ${link.dropped} drops`);
    svg.append(line);
    if (link.dropped > 0) {
      svg.append(pw.svg("line", { x1: a.x, y1: a.y, x2: mid.x, y2: mid.y, stroke: pw.css("--bad"),
        "stroke-width": 1, "stroke-dasharray": "2 5", "pointer-events": "none" }));
    }
  }

  function nodeShape(node, { x, y }, radius) {
    const shape = node.kind === "host"
      ? pw.svg("circle", { cx: x, cy: y, r: Math.min(radius, 5), class: "node host" })
      : pw.svg("rect", { x: x - radius, y: y - radius, width: 2 * radius, height: 2 * radius, rx: 2, class: "node" });
    pw.tip(shape, () => node.name);
    return shape;
  }

  const lineWidth = (links) => (links.length > 400 ? 1.4 : links.length > 100 ? 2 : 3);
  const leastBusyFirst = (links) => [...links].sort((a, b) => a.utilisation - b.utilisation);

  // A network without tiers: its switches on a ring in their order, so that groups stay together, hosts outside.
  function ring(card, nodes, links) {
    const W = Math.max(560, card.clientWidth - 30), H = Math.min(W, 720);
    const outer = H / 2 - 34, inner = outer - 46;
    const switches = nodes.map((n, i) => i).filter((i) => nodes[i].kind !== "host");
    const hostsOf = new Map(switches.map((n) => [n, []]));
    for (const link of links) if (hostsOf.has(link.to) && nodes[link.from].kind === "host") hostsOf.get(link.to).push(link.from);
    const at = new Array(nodes.length);
    const place = (angle, radius) => ({ x: W / 2 + radius * Math.sin(angle), y: H / 2 - radius * Math.cos(angle) });
    const step = (2 * Math.PI) / switches.length;
    const svg = pw.svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Link utilisation on the topology" });
    switches.forEach((n, i) => {
      at[n] = place(i * step, inner);
      const hosts = hostsOf.get(n);
      hosts.forEach((h, k) => { at[h] = place(i * step + ((k + 0.5) / hosts.length - 0.5) * step * 0.8, outer); });
    });
    const width = lineWidth(links);
    for (const link of leastBusyFirst(links)) {
      const [a, b] = [at[link.from], at[link.to]];
      if (a && b) halfLink(svg, nodes, link, a, { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 }, width);
    }
    const room = inner * step;
    const radius = Math.max(2, Math.min(8, room * 0.3));
    nodes.forEach((node, n) => {
      if (at[n]) svg.append(nodeShape(node, at[n], node.kind === "host" ? Math.max(1.5, radius / 2) : radius));
    });
    if (room >= 16) {
      switches.forEach((n, i) => {
        const { x, y } = place(i * step, outer + 16);
        const side = Math.abs(x - W / 2) < 8 ? "middle" : x > W / 2 ? "start" : "end";
        const text = pw.svg("text", { x, y: y + 4, "text-anchor": side });
        text.textContent = nodes[n].name;
        svg.append(text);
      });
    }
    card.append(svg);
  }

  function tiered(card, nodes, links) {
    const W = Math.max(560, card.clientWidth - 30), left = 84, rowHeight = 120, top = 34;
    // Hosts and the switches they are attached to are of tier 0 both.
    const rank = (n) => (n.kind === "host" ? -1 : n.tier);
    const tiers = [...new Set(nodes.map(rank))].sort((a, b) => b - a);
    const at = new Array(nodes.length);
    const rows = tiers.map((tier, r) => {
      const members = nodes.map((n, i) => i).filter((i) => rank(nodes[i]) === tier);
      members.forEach((n, i) => {
        at[n] = { x: left + ((i + 0.5) * (W - left)) / members.length, y: top + r * rowHeight };
      });
      return members;
    });
    const H = top + (tiers.length - 1) * rowHeight + 56;
    const svg = pw.svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Link utilisation on the topology" });
    const width = lineWidth(links);
    for (const link of leastBusyFirst(links)) {
      const [a, b] = [at[link.from], at[link.to]];
      if (!a || !b) continue;
      // Links within a tier bow out below it.
      const mid = { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 + (a.y === b.y ? Math.min(44, Math.abs(a.x - b.x) / 4) : 0) };
      halfLink(svg, nodes, link, a, mid, width);
    }
    rows.forEach((members, r) => {
      const label = pw.svg("text", { x: 0, y: top + r * rowHeight + 4 });
      label.textContent = tierName(tiers[r], nodes, members);
      svg.append(label);
      const room = (W - left) / members.length;
      const radius = Math.max(2, Math.min(8, room * 0.36));
      for (const n of members) {
        svg.append(nodeShape(nodes[n], at[n], radius));
        if (room >= 7 * nodes[n].name.length + 6) {
          // Beside a switch with links above and below, clear of most of them.
          const [first, last] = [r === 0, r === rows.length - 1];
          const text = first || last
            ? pw.svg("text", { x: at[n].x, y: at[n].y + (first ? -14 : 22), "text-anchor": "middle" })
            : pw.svg("text", { x: at[n].x + radius + 6, y: at[n].y + 4 });
          text.textContent = nodes[n].name;
          svg.append(text);
        }
      }
    });
    card.append(svg);
  }

  function tierName(tier, nodes, members) {
    return members.every((n) => nodes[n].kind === "host") ? `hosts (${members.length})` : `tier ${tier} (${members.length})`;
  }

  function matrices(parent, { panels }) {
    const card = pw.card(parent, "Link utilisation",
      "One matrix a tier and direction; a cell is a link, or the mean of neighbouring ones where they are many.", true);
    scale(card);
    const box = pw.element("div", "heat");
    for (const p of panels) {
      const transposed = p.ports > p.owners;
      const [cols, rows] = transposed ? [p.ports, p.owners] : [p.owners, p.ports];
      const side = Math.max(3, Math.min(14, Math.floor(590 / cols), Math.floor(240 / rows)));
      const figure = pw.element("figure");
      const between = p.tier === 1 ? "Host links" : `Tier ${p.tier - 1} to ${p.tier}`;
      const owners = `${p.first_owner} to ${p.last_owner}` + (p.owner_nodes > p.owners ? `, ${p.owner_nodes} in ${p.owners}` : "");
      figure.append(pw.element("figcaption", "", `${between}, ${p.direction}: ${pw.show("count", p.links)} links. `
        + (transposed ? `Rows: ${owners}; columns: their links.` : `Columns: ${owners}; rows: their links.`)));
      const canvas = pw.element("canvas", "matrix");
      [canvas.width, canvas.height] = [cols, rows];
      canvas.style.width = cols * side + "px";
      canvas.style.height = rows * side + "px";
      const g = canvas.getContext("2d");
      const value = (c, r) => (transposed ? p.utilisation[c * p.owners + r] : p.utilisation[r * p.owners + c]);
      for (let r = 0; r < rows; r++) {
        for (let c = 0; c < cols; c++) {
          const v = value(c, r);
          g.fillStyle = v < 0 ? pw.css("--empty") : pw.heat(v / 1000);
          g.fillRect(c, r, 1, 1);
        }
      }
      pw.tip(canvas, (e) => {
        const box = canvas.getBoundingClientRect();
        const c = Math.floor(((e.clientX - box.left) / box.width) * cols);
        const r = Math.floor(((e.clientY - box.top) / box.height) * rows);
        if (c < 0 || r < 0 || c >= cols || r >= rows) return "";
        const [owner, port] = transposed ? [r, c] : [c, r];
        const v = value(c, r);
        return `${transposed ? "row" : "column"} ${owner + 1}, link ${port + 1}: ${v < 0 ? "no link" : percent(v / 1000) + " busy"}`;
      });
      figure.append(canvas);
      box.append(figure);
    }
    card.append(box);
  }
})();
