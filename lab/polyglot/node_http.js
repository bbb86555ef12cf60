#!/usr/bin/env node
// node_http: an HTTP server in Node for stacks and categories: one event loop, so work in it keeps
// everybody waiting.
'use strict';
const http = require('node:http');

const options = {port: 0, work: 20000};
const faults = {cpu: 0};

function wrongUsage(sentence) {
  process.stderr.write(`node_http: ${sentence}\n`);
  process.exit(2);
}

for (let i = 2; i < process.argv.length; i += 2) {
  const name = process.argv[i].replace(/^--/, '');
  let value = process.argv[i + 1] ?? '';
  let into = options, key = name;
  if (name === 'fault') [into, key, value] = [faults, ...(value + '=').split('=')];
  if (!(key in into)) wrongUsage(`unknown ${name === 'fault' ? 'fault' : 'option'} ${key}`);
  if (!/^\d+$/.test(value)) wrongUsage(`${key} needs a number`);
  into[key] = Number(value);
}

function burnCpu(steps) {
  let x = 88172645;
  for (let i = 0; i < steps; ++i) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
  }
  return x;
}

const server = http.createServer((request, response) => {
  response.end(`${burnCpu(options.work + faults.cpu)}\n`);
});
server.on('error', (error) => {
  process.stderr.write(`node_http: cannot listen on 127.0.0.1:${options.port}: ${error.code}\n`);
  process.exit(1);
});
server.listen(options.port, '127.0.0.1', () => {
  console.log(`listening 127.0.0.1:${server.address().port}`);
});
process.on('SIGTERM', () => process.exit(0));
