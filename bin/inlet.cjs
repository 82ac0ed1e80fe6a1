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
  var source = path.join(__dirname, "..", "src", "main.ts");
  var compiled = path.join(__dirname, "..", "dist", "main.js");
  import(require("url").pathToFileURL(fs.existsSync(source) ? source : compiled).href);
}
