// Preloaded into a process: on SIGUSR2, collects garbage and writes the size of the heap to standard error.
const { setFlagsFromString } = require('node:v8')
const { runInNewContext } = require('node:vm')

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc')

process.on('SIGUSR2', () => {
  collectGarbage()
  process.stderr.write(`heap used: ${process.memoryUsage().heapUsed}\n`)
})
