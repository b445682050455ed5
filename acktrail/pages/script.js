"use strict";
(function () {
  var pad = function (n) { return (n < 10 ? "0" : "") + n; };
  var words = function (s) {
    if (s < 120) return Math.round(s) + " s";
    if (s < 7200) return Math.round(s / 60) + " min";
    return (s / 3600).toFixed(1) + " h";
  };
  // Count down, on the live page only: a report keeps the moment it was asked at.
  if (document.documentElement.hasAttribute("data-live")) {
    var tick = function () {
      document.querySelectorAll("[data-until]").forEach(function (e) {
        var left = (Number(e.dataset.until) - Date.now()) / 1000;
        e.textContent = left > 0 ? e.dataset.words + words(left) : "may have ended";
      });
    };
    tick();
    setInterval(tick, 1000);
  }
  // Filter the rows of long tables.
  document.querySelectorAll("main .table table").forEach(function (table) {
    var rows = table.tBodies[0] ? Array.prototype.slice.call(table.tBodies[0].rows) : [];
    if (rows.length < 8) return;
    var box = document.createElement("input");
    box.type = "search";
    box.className = "filter";
    box.placeholder = "Filter " + rows.length + " rows";
    box.setAttribute("aria-label", "Filter: " + (table.caption ? table.caption.textContent : "rows"));
    box.addEventListener("input", function () {
      var wanted = box.value.toLowerCase();
      rows.forEach(function (row) { row.hidden = row.textContent.toLowerCase().indexOf(wanted) < 0; });
    });
    table.parentNode.parentNode.insertBefore(box, table.parentNode);
  });
  // A crosshair with the time over charts of rates.
  document.querySelectorAll("svg[data-t0]").forEach(function (svg) {
    var ns = "http://www.w3.org/2000/svg", line = null, label = null;
    var leave = function () {
      if (line) { line.remove(); label.remove(); line = label = null; }
    };
    svg.addEventListener("pointermove", function (event) {
      var box = svg.getBoundingClientRect(), share = (event.clientX - box.left) / box.width;
      if (share < 0 || share > 1) return;
      if (!line) {
        line = svg.appendChild(document.createElementNS(ns, "line"));
        label = svg.appendChild(document.createElementNS(ns, "text"));
        line.setAttribute("class", "cross");
        line.setAttribute("y1", "0");
        line.setAttribute("y2", "100%");
        label.setAttribute("class", "label cross-label");
        label.setAttribute("y", "11");
      }
      var x = (share * 100).toFixed(2) + "%";
      var t0 = Number(svg.dataset.t0), t1 = Number(svg.dataset.t1);
      var at = new Date((t0 + share * (t1 - t0)) * 1000);
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
      label.setAttribute("x", x);
      label.setAttribute("text-anchor", share > 0.8 ? "end" : "start");
      label.textContent = pad(at.getUTCMonth() + 1) + "-" + pad(at.getUTCDate()) + " " +
        pad(at.getUTCHours()) + ":" + pad(at.getUTCMinutes()) + ":" + pad(at.getUTCSeconds()) + "Z";
    });
    svg.addEventListener("pointerleave", leave);
  });
})();
