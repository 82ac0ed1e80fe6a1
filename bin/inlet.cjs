#!/usr/bin/env node
// Starts Inlet: from src in a checkout, where Node strips the types, else the built program from dist.
// This file runs on every version of Node, so that an old one fails with a clear message.
"use strict";

var path = require("path");
var fs = require("fs");

var oldest = 24;

if (Number(process.versions.node.split(".")[0]) < oldest) {
  console.error(
    "inlet: Inlet needs Node " +
      oldest +
      " or newer, and this is Node " +
      process.versions.node +
      ". Get it: https://nodejs.org/en/download",
  );
  process.exitCode = 2;
} else {
  // By default V8 lets some 200 MiB of garbage pile up. Collecting earlier frees download buffers, but slows down the
  // start: a short command ends before it begins.
  var collectEarlier = function () {
    var v8 = require("v8");
    v8.setFlagsFromString("--semi-space-growth-factor=1");
    v8.setFlagsFromString("--heap-growing-percent=150");
  };
  if (process.argv[2] === "run" || process.argv[2] === "once") collectEarlier();
  else setTimeout(collectEarlier, 500).unref();
  var source = path.join(__dirname, "..", "src", "main.ts");
  var built = path.join(__dirname, "..", "dist", "main.js");
  import(require("url").pathToFileURL(fs.existsSync(source) ? source : built).href);
}
