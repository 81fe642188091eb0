import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { type Clock, systemClock } from '../../../base/clock.ts'
import { type Logger, silentLog } from '../../../base/log.ts'
import { manualClock } from '../../../base/manual-clock.ts'
import { identifyProcess, isRunning, type ProcessIdentity } from '../../../host/process-identity.ts'
import { type DriverLog, openDriverLog } from './driver-log.ts'
import { createDriverProcess } from './driver-process.ts'
import { endOrphanedProcess, SOCKET_VARIABLE } from './orphaned-process.ts'

const clock = systemClock()
let dir: string
let driverLog: DriverLog
let recordFile: string
let socket: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-process-'))
  driverLog = await openDriverLog(join(dir, 'log'))
  recordFile = join(dir, 'process.json')
  socket = join(dir, 'csi.sock')
})
afterEach(async () => {
  await driverLog.close()
  await rm(dir, { recursive: true })
})

const logErrors = (errors: string[]): Logger => ({
  ...silentLog,
  error: (_fields: object, message: string) => void errors.push(message),
})

function start(command: string, clock: Clock = systemClock()) {
  const exits: string[] = []
  const errors: string[] = []
  const stop = new AbortController()
  const process = createDriverProcess({
    command,
    socket,
    mark: socket,
    recordFile,
    driverLog,
    clock,
    random: () => 0,
    log: logErrors(errors),
    onExit: ({ reason, afterMs }) => void exits.push(`${reason}, ${afterMs} ms`),
  })
  const run = process.run(stop.signal)
  return {
    process,
    exits,
    errors,
    async stop() {
      stop.abort()
      await run
    },
  }
}

const waitUntil = async (condition: () => boolean | Promise<boolean>) => {
  while (!(await condition())) await clock.sleep(5)
}
const readRecord = async (): Promise<ProcessIdentity> => JSON.parse(await readFile(recordFile, 'utf8'))
const isRecorded = async () => existsSync(recordFile) && (await readRecord()).pid !== undefined

describe('createDriverProcess', () => {
  it('restarts a process that exits, with exponential backoff, and keeps its last output', async () => {
    const { process, exits, stop } = start('echo "cannot open the disk" >&2; exit 3')
    await waitUntil(() => exits.length === 3)
    expect(exits).toEqual(['exited with code 3, 250 ms', 'exited with code 3, 500 ms', 'exited with code 3, 1000 ms'])
    expect(driverLog.quoteLines()).toEqual(['cannot open the disk'])
    expect(process.starts).toBe(3)
    await stop()
    expect(existsSync(recordFile)).toBe(false)
  })

  it('passes the socket in CSI_ENDPOINT, and reports a program that does not exist', async () => {
    const { exits, stop } = start('echo "$CSI_ENDPOINT"; exec missing-driver')
    await waitUntil(() => exits.length === 1)
    await stop()
    expect(exits).toEqual(['exited with code 127, 250 ms'])
    expect(driverLog.quoteLines()).toEqual([`unix://${socket}`, expect.stringContaining('missing-driver')])
  })

  it('ends the process and its children', async () => {
    const { process, stop } = start(`sleep 1000 & echo $! > ${dir}/child; wait`)
    await waitUntil(() => existsSync(join(dir, 'child')) && statSync(join(dir, 'child')).size > 0)
    await waitUntil(isRecorded)
    const child = await identifyProcess(Number(await readFile(join(dir, 'child'), 'utf8')))
    const leader = await readRecord()
    expect([leader.pid, isRunning(leader), isRunning(child)]).toEqual([process.pid, true, true])
    await stop()
    await waitUntil(() => !isRunning(child)) // its parent, which reaps it, is no longer this process
    expect(isRunning(leader)).toBe(false)
  })
})

/** Advances the clock until the promise settles. */
async function advanceUntil(settled: Promise<unknown>, manual: ReturnType<typeof manualClock>): Promise<void> {
  let isSettled = false
  void settled.finally(() => {
    isSettled = true
  })
  while (!isSettled) {
    await manual.advance(1_000)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

it('a driver that does not react to SIGKILL is reported as such, and does not block the shutdown of the server', async () => {
  const manual = manualClock()
  const { process: driver, stop, errors } = start('sleep 1000', manual)
  await waitUntil(isRecorded)
  const { pid } = driver
  onTestFinished(() => void execFileSync('kill', ['-KILL', '--', `-${pid}`]))
  const kill = vi.spyOn(process, 'kill').mockReturnValue(true)
  onTestFinished(() => kill.mockRestore())
  await advanceUntil(stop(), manual)
  expect(errors).toEqual([
    'cannot end the driver: a process of it does not react to SIGKILL, or runs as another user. ' +
      `End it with: sudo kill -KILL -- -${pid}`,
  ])
  expect(existsSync(recordFile)).toBe(true)
})

describe('a driver that runs as another user', () => {
  /** Makes signals to other processes fail, as if sudo had started them. */
  function forbidSignals() {
    const kill = vi.spyOn(process, 'kill').mockImplementation(() => {
      throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' })
    })
    onTestFinished(() => kill.mockRestore())
  }

  it("is reported with the command that ends it, and does not block the server's shutdown", async () => {
    const { process: driver, stop, errors } = start('sleep 1000')
    await waitUntil(isRecorded)
    const { pid } = driver
    onTestFinished(() => void execFileSync('kill', ['-KILL', '--', `-${pid}`]))
    forbidSignals()
    await stop()
    expect(errors).toEqual([`cannot end the driver: it runs as another user. End it with: sudo kill -KILL -- -${pid}`])
    expect(existsSync(recordFile)).toBe(true)
  })

  it('is reported by the next server, which starts anyway', async () => {
    const child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' })
    await once(child, 'spawn')
    onTestFinished(() => void execFileSync('kill', ['-KILL', String(child.pid)]))
    await writeFile(recordFile, JSON.stringify(await identifyProcess(child.pid!)))
    forbidSignals()
    const manual = manualClock()
    const errors: string[] = []
    const ended = endOrphanedProcess({ recordFile, mark: socket, clock: manual, log: logErrors(errors) })
    await advanceUntil(ended, manual)
    expect(errors).toEqual([expect.stringContaining(`End it with: sudo kill -KILL ${child.pid}`)])
  })
})

describe('endOrphanedProcess', () => {
  const end = () => endOrphanedProcess({ recordFile, mark: socket, clock, log: silentLog })
  const startOrphan = async (env: Record<string, string> = {}) => {
    const child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore', env: { ...process.env, ...env } })
    await once(child, 'spawn')
    return { child, identity: await identifyProcess(child.pid!) }
  }

  it('ends the recorded process of a killed server', async () => {
    const { child, identity } = await startOrphan()
    const exit = once(child, 'exit')
    await writeFile(recordFile, JSON.stringify(identity))
    await end()
    expect(await exit).toEqual([null, 'SIGTERM'])
    expect(existsSync(recordFile)).toBe(false)
  })

  it('does not end a process that reuses the recorded PID', async () => {
    const { child, identity } = await startOrphan()
    await writeFile(recordFile, JSON.stringify({ ...identity, startTicks: '1' }))
    await end()
    expect(isRunning(identity)).toBe(true)
    child.kill('SIGKILL')
  })

  it('finds a process with an incomplete record by its environment', async () => {
    const { child } = await startOrphan({ [SOCKET_VARIABLE]: socket })
    const exit = once(child, 'exit')
    const { child: otherChild, identity: otherIdentity } = await startOrphan({ [SOCKET_VARIABLE]: `${socket}2` })
    await writeFile(recordFile, '{}\n')
    await end()
    expect(await exit).toEqual([null, 'SIGTERM'])
    expect(isRunning(otherIdentity)).toBe(true)
    otherChild.kill('SIGKILL')
  })
})
