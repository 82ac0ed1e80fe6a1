#!/usr/bin/env node
// Starts Inlet: from src in a checkout, where Node itself strips the types, else from the compiled dist.
// This file alone is written for any Node, so that one that is too old can still say so.
"use strict";

var path = require("path");
var fs = require("fs");

var oldest = 24;

if (Number(process.versions.node.split(".")[0]) < oldest) {
  console.error(
    "inlet: Inlet needs Node " + oldest + " or newer, and this is Node " + process.versions.node + ".",
  );
  process.exitCode = 2;
} else {
  // V8 would let some 200 MiB of garbage pile up before it collects it. Collected while young, it costs no more time,
  // and buffers of large downloads less.
  var v8 = require("v8");
  v8.setFlagsFromString("--semi-space-growth-factor=1");
  v8.setFlagsFromString("--heap-growing-percent=150");
  var source = path.join(__dirname, "..", "src", "main.ts");
  var compiled = path.join(__dirname, "..", "dist", "src", "main.js");
  import(require("url").pathToFileURL(fs.existsSync(source) ? source : compiled).href);
}
