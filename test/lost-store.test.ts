// Removes, renames or hides the directory of the store under a running server.
// docs/how-to/operations.md#failures describes the symptoms.
import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { runStowage } from './helpers/run-stowage.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const CONFIGMAPS = '/api/v1/namespaces/default/configmaps'
const WRITERS = 8
const ROUNDS = process.env.SCALE === '100' ? 100 : 2

const skipMessage = skipReason(await probeThisMachine(), ['mount'])

let scratch: string
let server: RunningServer | undefined
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'stowage-lost-'))
})
afterEach(async () => {
  await server?.kill().catch(() => {})
  server = undefined
  await rm(scratch, { recursive: true, force: true })
})

const start = (dataDir: string) => startServer({ dataDir, command: 'server', flags: ['--log-level', 'warn'] })

interface Load {
  /** Names in responses with status 201. */
  readonly acknowledged: ReadonlySet<string>
  /** Names in responses with status 201 to requests that were sent after markLost(). */
  readonly acknowledgedAfterLoss: readonly string[]
  markLost(): void
  /** Resolves when every writer has failed. */
  readonly ended: Promise<unknown>
}

function startLoad({ call }: RunningServer): Load {
  const acknowledged = new Set<string>()
  const acknowledgedAfterLoss: string[] = []
  let isLost = false
  const ended = Promise.all(
    Array.from({ length: WRITERS }, async (_, writer) => {
      for (let index = 0; ; index++) {
        const name = `w${writer}-${index}`
        const wasLost = isLost
        const status = await call('POST', CONFIGMAPS, { metadata: { name } }).then(
          (response) => response.status,
          () => 0, // the connection was closed
        )
        if (status === 201) {
          acknowledged.add(name)
          if (wasLost) acknowledgedAfterLoss.push(name)
        } else if (status === 0) return
      }
    }),
  )
  const markLost = () => {
    isLost = true
  }
  return { acknowledged, acknowledgedAfterLoss, ended, markLost }
}

const waitForWrites = async ({ acknowledged }: Load, count: number) => {
  while (acknowledged.size < count) await new Promise((resolve) => setImmediate(resolve))
}

describe('a server whose store is lost', () => {
  it(`SYS-20 acknowledges no write, exits with code 1 and names the file if the directory is renamed (${ROUNDS} times)`, async () => {
    const dataDir = join(scratch, 'data')
    for (let round = 0; round < ROUNDS; round++) {
      server = await start(dataDir)
      const load = startLoad(server)
      await waitForWrites(load, 50 + round)
      renameSync(join(dataDir, 'store'), join(scratch, 'aside'))
      load.markLost()
      expect(await server.whenExited()).toBe(1)
      await load.ended
      expect(server.log()).toContain(
        `The store has failed, so the server stops: the store is closed: ${dataDir}/store/store.mdb was removed or renamed`,
      )
      expect(load.acknowledgedAfterLoss).toEqual([])

      renameSync(join(scratch, 'aside'), join(dataDir, 'store'))
      server = await start(dataDir)
      const { items } = (await server.call('GET', CONFIGMAPS)).json as { items: { metadata: { name: string } }[] }
      const names = new Set(items.map(({ metadata }) => metadata.name))
      expect([...load.acknowledged].filter((name) => !names.has(name))).toEqual([])
      for (const name of names) await server.call('DELETE', `${CONFIGMAPS}/${name}`)
      expect(await server.stop()).toBe(0)
    }
  })

  it('SYS-20 rejects a second server on the path, even in a recreated directory', async () => {
    const dataDir = join(scratch, 'data')
    server = await start(dataDir)
    process.kill(server.pid, 'SIGSTOP') // it cannot detect the loss yet
    rmSync(dataDir, { recursive: true })
    mkdirSync(dataDir)
    const secondServer = await runStowage('server', '--data-dir', dataDir, '--listen', '127.0.0.1:0')
    expect(secondServer.code).toBe(1)
    expect(secondServer.stderr).toContain(
      `The directory ${dataDir}/store is in use by another Stowage process. Stop it`,
    )
    process.kill(server.pid, 'SIGCONT')
    expect(await server.whenExited()).toBe(1)
    expect(server.log()).toContain(`${dataDir}/store/store.mdb was removed or renamed`)
  })

  it.skipIf(skipMessage)(
    `SYS-20 exits with code 1 if another file system is mounted over the directory${skipMessage ? ` (${skipMessage})` : ''}`,
    async () => {
      const dataDir = join(scratch, 'data')
      server = await start(dataDir)
      const load = startLoad(server)
      await waitForWrites(load, 50)
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', join(dataDir, 'store')])
      try {
        load.markLost()
        expect(await server.whenExited()).toBe(1)
      } finally {
        execFileSync('umount', [join(dataDir, 'store')])
      }
      await load.ended
      expect(load.acknowledgedAfterLoss).toEqual([])
      expect(server.log()).toContain(`${dataDir}/store/store.mdb was removed or renamed`)
    },
  )
})
