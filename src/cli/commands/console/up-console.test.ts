import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { silentLog } from '../../../base/log.ts'
import { manualClock } from '../../../base/manual-clock.ts'
import { listenUpConsole } from './up-console.ts'

it('SYS-13 the console of `stowage up` sends no request to the API server until 30 s after it is ready, and then takes samples', async () => {
  const paths: string[] = []
  const server = createServer((incoming, response) => {
    paths.push(incoming.url!)
    response.writeHead(404).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const dataDir = await mkdtemp(join(tmpdir(), 'stowage-up-console-'))
  const kubeconfig = join(dataDir, 'kubeconfig')
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`
  const contexts = [{ name: 'main', context: { cluster: 'main' } }]
  const clusters = [{ name: 'main', cluster: { server: url } }]
  await writeFile(kubeconfig, JSON.stringify({ 'current-context': 'main', contexts, clusters }))
  const clock = manualClock()
  const listener = await listenUpConsole({ port: 0, dataDir, clock, random: () => 0, log: silentLog })
  onTestFinished(async () => {
    await listener.close()
    server.closeAllConnections()
    server.close()
    await rm(dataDir, { recursive: true })
  })
  await clock.advance(60_000)
  listener.setReady({ kubeconfig })
  await clock.advance(29_999)
  expect(paths).toEqual([])
  await clock.advance(1)
  await vi.waitFor(() => expect(paths).toContain('/apis/stowage.dev/v1/operations?limit=500'), { timeout: 20_000 })
})
