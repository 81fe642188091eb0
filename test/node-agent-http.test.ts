// Runs node agents as `stowage node` does, over HTTP against a server in its own process.
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock, systemRandom } from '../src/base/clock.ts'
import { silentLog } from '../src/base/log.ts'
import { runNode } from '../src/cli/commands/node/run.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const PODS = '/api/v1/namespaces/default/pods'

describe('node agents over HTTP', () => {
  const clock = systemClock()
  let dir: string
  let server: RunningServer
  const nodes: { readonly stop: AbortController; readonly run: Promise<void> }[] = []

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-nodes-'))
    server = await startServer({ dataDir: join(dir, 'data'), command: 'server' })
  })
  afterAll(async () => {
    for (const { stop } of nodes) stop.abort()
    await Promise.all(nodes.map(({ run }) => run.catch(() => {})))
    await server.stop()
    await rm(dir, { recursive: true, force: true })
  })

  /** Starts a node agent. Resolves when it is ready, and rejects if it cannot start. */
  async function startNode(nodeName: string, flags: object = {}): Promise<{ metrics: string }> {
    const stop = new AbortController()
    let resolveReady = (_: { metrics?: string }) => {}
    const whenReady = new Promise<{ metrics?: string }>((resolve) => {
      resolveReady = resolve
    })
    const allFlags = {
      kubeconfig: server.kubeconfig,
      nodeName,
      rootDir: join(dir, nodeName),
      runCommands: false,
      maxPods: '10',
      httpEndpoint: '127.0.0.1:0',
      ...flags,
    }
    const deps = { clock, random: systemRandom(), log: silentLog, signal: stop.signal, env: {}, onReady: resolveReady }
    const run = runNode(allFlags, deps)
    nodes.push({ stop, run })
    const { metrics = '' } = (await Promise.race([whenReady, run])) ?? {}
    return { metrics }
  }

  async function pollUntil(condition: () => Promise<boolean>): Promise<void> {
    while (!(await condition())) await clock.sleep(20) // polls until the test times out
  }

  it('SYS-7 register in one process, run their pods, and remove the files of deleted pods', async () => {
    const { metrics } = await startNode('left', { label: ['example.com/rack=7'] })
    await startNode('right')
    const { json } = await server.call('GET', '/api/v1/nodes')
    expect(json.items.map(({ metadata }: any) => metadata.name)).toEqual(['left', 'right'])
    expect(json.items[0].metadata.labels['example.com/rack']).toBe('7')
    expect(json.items[0].status.capacity.pods).toBe('10')
    for (const nodeName of ['left', 'right']) {
      const container = { name: 'main', image: 'none', volumeMounts: [{ name: 'scratch', mountPath: '/s' }] }
      const spec = { nodeName, containers: [container], volumes: [{ name: 'scratch', emptyDir: {} }] }
      await server.call('POST', PODS, { metadata: { name: `on-${nodeName}` }, spec })
    }
    for (const nodeName of ['left', 'right']) {
      const pod = `${PODS}/on-${nodeName}`
      await pollUntil(async () => (await server.call('GET', pod)).json.status.phase === 'Running')
      await server.call('DELETE', pod)
      await pollUntil(async () => (await server.call('GET', pod)).status === 404)
      await pollUntil(async () => (await readdir(join(dir, nodeName, 'pods'))).length === 0)
    }
    const text = await (await fetch(`${metrics}/metrics`)).text()
    expect(text).toContain('# TYPE csi_operations_seconds histogram')
  })

  it('reject a node name or directory that is in use, with the reason', async () => {
    await startNode('taken')
    await expect(startNode('taken', { rootDir: join(dir, 'other-dir') })).rejects.toThrow(
      /The node name "taken" is used by another agent/,
    )
    await expect(startNode('other', { rootDir: join(dir, 'taken') })).rejects.toThrow(/used by another node agent/)
  })

  it('reject invalid flags before creating files', async () => {
    await expect(startNode('Bad_Name')).rejects.toThrow(/--node-name "Bad_Name"/)
    await expect(startNode('fine', { label: ['x'] })).rejects.toThrow(/--label "x": expected key=value/)
    await expect(startNode('fine', { maxPods: 'many' })).rejects.toThrow(/--max-pods "many"/)
    await expect(readdir(join(dir, 'fine'))).rejects.toThrow(/ENOENT/)
  })
})
