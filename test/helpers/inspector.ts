// Reads the memory of a server process after a garbage collection, through the Node.js inspector.
import WebSocket from 'ws'
import type { RunningServer } from './server.ts'

/** Environment of a server whose memory can be read. */
export const INSPECTOR_ENV = { NODE_OPTIONS: '--inspect=127.0.0.1:0' }

/** Collects garbage in the server, and returns the bytes that are still in use. */
export async function readLiveMemory(server: RunningServer): Promise<{ heap: number; buffers: number }> {
  const url = /Debugger listening on (ws:\S+)/.exec(server.log())?.[1]
  if (!url) throw new Error('the server was not started with INSPECTOR_ENV')
  const socket = new WebSocket(url)
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  let lastId = 0
  const call = (method: string, params: object = {}) =>
    new Promise<any>((resolve) => {
      const id = ++lastId
      const onMessage = (data: WebSocket.RawData) => {
        const message = JSON.parse(String(data))
        if (message.id !== id) return
        socket.off('message', onMessage)
        resolve(message.result)
      }
      socket.on('message', onMessage)
      socket.send(JSON.stringify({ id, method, params }))
    })
  try {
    // Finalizers that run after the first collection release memory for the second one.
    for (let round = 0; round < 2; round++) await call('HeapProfiler.collectGarbage')
    const expression = 'JSON.stringify(process.memoryUsage())'
    const { heapUsed, arrayBuffers } = JSON.parse((await call('Runtime.evaluate', { expression })).result.value)
    return { heap: heapUsed, buffers: arrayBuffers }
  } finally {
    socket.close()
  }
}
