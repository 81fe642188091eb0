import { describe, expect, it } from 'vitest'
import { silentLog } from '../../base/log.ts'
import { manualClock } from '../../base/manual-clock.ts'
import type { Drivers } from './drivers.ts'
import type { PluginSocket } from './plugin-directory.ts'
import { createRegistrar } from './registrar.ts'

/** Runs a registrar. Each plugin is named after its socket. A call fails while `failures` contains it. */
function startRegistrar(initialPaths: readonly string[]) {
  const clock = manualClock()
  const stop = new AbortController()
  const registeredNames = new Set<string>()
  /** The calls that fail, as `unregister NAME` or `notify NAME`. */
  const failures = new Set<string>()
  const sockets: PluginSocket[] = initialPaths.map((path) => ({ path, id: '1' }))
  let wake = () => {}
  const failIfPlanned = (call: string) => {
    if (failures.has(call)) throw new Error(`${call} failed`)
  }
  const drivers = {
    async register({ name }) {
      if (registeredNames.has(name)) throw new Error(`${name} is already registered`)
      registeredNames.add(name)
    },
    async unregister({ name }) {
      failIfPlanned(`unregister ${name}`)
      registeredNames.delete(name)
    },
    settle() {},
  } satisfies Partial<Drivers> as unknown as Drivers
  const registrar = createRegistrar({
    directory: {
      list: async () => [...sockets],
      watch(onChange) {
        wake = onChange
        return () => {}
      },
    },
    plugins: {
      getInfo: async (path) => ({ type: 'CSIPlugin', name: path, endpoint: '', supportedVersions: ['1.0.0'] }),
      async notify(path, error) {
        if (error === undefined) failIfPlanned(`notify ${path}`)
      },
    },
    drivers,
    driverSockets: [],
    readDriverName: async () => '',
    clock,
    log: silentLog,
  })
  const run = registrar.run(stop.signal)
  return {
    registrar,
    registeredNames,
    failures,
    sockets,
    /** Reports a change of the directory, which triggers a scan. */
    async scan() {
      wake()
      await clock.advance(0)
      await clock.nextTurn()
    },
    advance: (ms: number) => clock.advance(ms),
    async stop() {
      stop.abort()
      await run
    },
  }
}

describe('the registrar', () => {
  it('CAP-3 keeps registering and unregistering other drivers while one cannot be unregistered, and retries that one', async () => {
    const { registrar, registeredNames, failures, sockets, scan, advance, stop } = startRegistrar(['a', 'b'])
    await scan()
    expect([...registeredNames]).toEqual(['a', 'b'])

    failures.add('unregister a')
    sockets.splice(0, 2, { path: 'c', id: '1' })
    await scan()
    expect([...registeredNames]).toEqual(['a', 'c'])
    expect(registrar.problems()).toEqual({ a: 'unregister a failed' })

    failures.clear()
    await advance(2_000)
    expect([...registeredNames]).toEqual(['c'])
    expect(registrar.problems()).toEqual({})
    await stop()
  })

  it('CAP-3 registers a recreated socket after its earlier driver was unregistered', async () => {
    const { registeredNames, failures, sockets, scan, advance, registrar, stop } = startRegistrar(['a'])
    await scan()
    failures.add('unregister a')
    sockets[0] = { path: 'a', id: '2' }
    await scan()
    expect(registrar.problems()).toEqual({ a: 'unregister a failed' })
    failures.clear()
    await advance(2_000)
    expect([...registeredNames]).toEqual(['a'])
    expect(registrar.problems()).toEqual({})
    await stop()
  })

  it('CAP-3 registers a plugin again if it could be neither notified nor unregistered', async () => {
    const { registeredNames, failures, scan, advance, registrar, stop } = startRegistrar(['a'])
    failures.add('notify a').add('unregister a')
    await scan()
    expect(registrar.problems()).toEqual({ a: 'unregister a failed' })
    failures.clear()
    await advance(3_000)
    expect([...registeredNames]).toEqual(['a'])
    expect(registrar.problems()).toEqual({})
    await stop()
  })
})
