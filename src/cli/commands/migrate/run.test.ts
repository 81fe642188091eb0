// Runs against the real API server without a socket; the test acts as the controller.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { unavailable } from '../../../api/status-error.ts'
import { inProcessClient, SYSTEM_USER } from '../../../apiserver/index.ts'
import { createServerFixture, type ServerFixture } from '../../../apiserver/server.fixture.ts'
import { UsageError } from '../../../base/usage-error.ts'
import type { Client } from '../../../client/index.ts'
import { memoryMedium } from '../../../store/index.ts'
import { ExitError } from '../../flags/common.ts'
import { type MigrateFlags, readRequest } from './command.ts'
import { MIGRATE_RECORD } from './record.ts'
import { migrateClaims } from './run.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const CLASSES = '/apis/storage.k8s.io/v1/volumeattributesclasses'

let fixture: ServerFixture
let client: Client
/** The status that the controller writes for a requested class. Default: the class is in effect. */
let controller: (name: string, wanted: string) => object | undefined
let over: AbortController
let controllerRun: Promise<void>

const settled = (wanted: string) => ({
  currentVolumeAttributesClassName: wanted || null,
  modifyVolumeStatus: null,
  conditions: null,
})
const infeasible = (wanted: string, message: string) => ({
  modifyVolumeStatus: { status: 'Infeasible', targetVolumeAttributesClassName: wanted },
  conditions: [{ type: 'ModifyVolumeError', status: 'True', message }],
})

beforeEach(async () => {
  fixture = await createServerFixture()
  await start()
  for (const name of ['silver', 'gold', 'bronze']) {
    await fixture.post(CLASSES, { metadata: { name }, driverName: 'd.example.com', parameters: { tier: name } })
  }
})
afterEach(end)

async function start() {
  client = inProcessClient(fixture.server.objects, SYSTEM_USER)
  controller = (_name, wanted) => settled(wanted)
  over = new AbortController()
  controllerRun = runController()
}
async function end() {
  over.abort()
  await controllerRun
  await fixture.store.close()
}

async function runController(): Promise<void> {
  const seen = new Map<string, string>()
  for await (const event of client.watch(persistentVolumeClaimKind, { signal: over.signal })) {
    if (event.type === 'bookmark' || event.type === 'deleted') continue
    const { metadata, spec, status } = event.object
    const wanted = spec?.volumeAttributesClassName ?? ''
    const isSettled = wanted === (status?.currentVolumeAttributesClassName ?? '') && !status?.modifyVolumeStatus
    if (status?.phase !== 'Bound' || isSettled || seen.get(metadata.name!) === wanted) continue
    seen.set(metadata.name!, wanted)
    const next = controller(metadata.name!, wanted)
    if (next) await setStatus(metadata.name!, next)
  }
}

const setStatus = async (name: string, status: object) => {
  const answer = await fixture.patch(`${CLAIMS}/${name}/status`, { status }, 'merge')
  expect(answer.status, answer.text).toBe(200)
}

async function aClaim(name: string, { className = 'silver', labels = { app: 'db' }, driver = 'd.example.com' } = {}) {
  await fixture.post('/api/v1/persistentvolumes', {
    metadata: { name: `pv-${name}` },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      csi: { driver, volumeHandle: name },
    },
  })
  const spec = {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '1Gi' } },
    volumeName: `pv-${name}`,
    ...(className ? { volumeAttributesClassName: className } : {}),
  }
  const answer = await fixture.post(CLAIMS, { metadata: { name, labels }, spec })
  expect(answer.status, answer.text).toBe(201)
  await setStatus(name, { phase: 'Bound', ...(className ? { currentVolumeAttributesClassName: className } : {}) })
}
const someClaims = async (count: number) => {
  for (let index = 0; index < count; index++) await aClaim(`db-${index}`)
}
const claim = async (name: string) => (await fixture.get(`${CLAIMS}/${name}`)).json
const classOf = async (name: string) => (await claim(name)).spec.volumeAttributesClassName
const recordOf = async (name: string) =>
  JSON.parse((await claim(name)).metadata.annotations?.[MIGRATE_RECORD] ?? 'null')
const classes = async (count: number) =>
  Promise.all(Array.from({ length: count }, (_, index) => classOf(`db-${index}`)))

interface Run {
  code: number
  out: string
}

const DEFAULTS = { rate: '1000/s', parallel: '50', maxFailures: '3', timeout: '10m', output: 'text' }
let chance = 0

async function migrate(
  flags: Partial<MigrateFlags>,
  {
    signal = new AbortController().signal,
    through = client,
    terminal = undefined as undefined | { columns(): number },
  } = {},
): Promise<Run> {
  let out = ''
  const write = (text: string) => {
    out += text
  }
  const random = () => ((++chance * 7_919) % 1_000) / 1_000
  const request = readRequest({ ...DEFAULTS, ...flags })
  const deps = { clock: fixture.clock, random, signal, env: {}, terminal, write }
  let isOver = false
  const running = migrateClaims(through, request, request.inAllNamespaces ? undefined : 'default', deps)
    .then(
      () => 0,
      (error) => {
        if (error instanceof ExitError) return error.exitCode
        throw error
      },
    )
    .finally(() => {
      isOver = true
    })
  running.catch(() => {})
  while (!isOver) {
    for (let turn = 0; turn < 5; turn++) await fixture.clock.nextTurn()
    await fixture.clock.advance(1)
  }
  return { code: await running, out }
}
const FORWARD = { from: 'silver', to: 'gold' }

describe('stowage migrate', () => {
  it('PLUS-4 moves all claims of a class and waits until the new one is in effect', async () => {
    await someClaims(3)
    await aClaim('other', { className: 'bronze' })
    const { code, out } = await migrate(FORWARD)
    expect(code, out).toBe(0)
    expect([await classes(3), await classOf('other')]).toEqual([['gold', 'gold', 'gold'], 'bronze'])
    expect(out).toMatch(/^Operation m-[0-9a-f]{8}: moving 3 claims from silver to gold, 1000\/s\.\n/)
    expect(out).toContain('default/db-0: gold is in effect\n')
    expect(out).toMatch(/3 of 3 claims moved from silver to gold\.\nTo undo: stowage migrate --undo --operation m-/)
  })

  it('PLUS-4 offers --undo only if a claim was moved', async () => {
    await someClaims(2)
    for (const name of ['db-0', 'db-1']) await setStatus(name, { phase: 'Lost' })
    const none = await migrate({ ...FORWARD, maxFailures: '5' })
    expect(none.code).toBe(1)
    expect(none.out).toContain(
      '0 of 2 claims moved from silver to gold, 2 failed. Run the same command again to continue.\n',
    )
    expect(none.out).not.toContain('--undo')

    await setStatus('db-0', { phase: 'Bound' })
    controller = (_, wanted) => infeasible(wanted, 'iops too high')
    const refused = await migrate({ ...FORWARD, maxFailures: '5' })
    expect(refused.out).toContain('0 of 2 claims moved')
    expect(refused.out).toMatch(/or undo the operation:\n {2}stowage migrate --undo --operation m-/)
  })

  it('PLUS-4 selects by label and in all namespaces', async () => {
    await someClaims(1)
    await aClaim('web', { labels: { app: 'web' } })
    expect((await migrate({ ...FORWARD, selector: 'app=db' })).code).toBe(0)
    expect([await classOf('db-0'), await classOf('web')]).toEqual(['gold', 'silver'])
    expect((await migrate({ ...FORWARD, allNamespaces: true })).code).toBe(0)
    expect(await classOf('web')).toBe('gold')
  })

  it('PLUS-4 starts claims at the set rate', async () => {
    await someClaims(5)
    const startedMs: number[] = []
    controller = (_, wanted) => {
      startedMs.push(fixture.clock.monotonicMs())
      return settled(wanted)
    }
    await migrate({ ...FORWARD, rate: '2/s' })
    const gaps = startedMs.slice(1).map((ms, index) => ms - startedMs[index]!)
    expect(gaps).toHaveLength(4)
    for (const gap of gaps) expect(gap).toBeGreaterThanOrEqual(490)
  })

  it('PLUS-4 pauses after too many failures with their reasons, and continues when it is run again', async () => {
    await someClaims(10)
    controller = (name, wanted) =>
      ['db-1', 'db-2'].includes(name) ? infeasible(wanted, 'iops too high') : settled(wanted)
    const paused = await migrate({ ...FORWARD, maxFailures: '1', parallel: '1' })
    expect(paused.code).toBe(1)
    expect(paused.out).toContain('default/db-1: FAILED: iops too high; its volume is unchanged\n')
    expect(paused.out).toContain(
      '1 of 10 claims moved from silver to gold, 2 failed. Paused, because more than 1 failed.',
    )
    expect(paused.out).toMatch(/default\/db-9 {2}not begun {2}stopped after earlier failures/)
    expect(await classes(10)).toEqual(['gold', 'gold', 'gold', ...Array(7).fill('silver')])

    await setStatus('db-1', settled('gold')) // the driver accepts the class now
    await setStatus('db-2', settled('gold'))
    const again = await migrate({ ...FORWARD, maxFailures: '1' })
    expect(again.code, again.out).toBe(0)
    expect(again.out).toContain('moving 7 claims from silver to gold, 1000/s. Resuming an interrupted run.')
    expect(again.out).toContain('10 of 10 claims moved')
    const ids = new Set(await Promise.all(Array.from({ length: 10 }, async (_, i) => (await recordOf(`db-${i}`)).id)))
    expect(ids.size).toBe(1)
  })

  it('PLUS-4 undo moves back only the claims it moved, infeasible or not, and leaves no record', async () => {
    await someClaims(4)
    await aClaim('rich', { className: 'gold' })
    controller = (name, wanted) => (name === 'db-2' && wanted === 'gold' ? infeasible(wanted, 'no') : settled(wanted))
    expect((await migrate(FORWARD)).code).toBe(1)
    const back = await migrate({ undo: true })
    expect(back.code, back.out).toBe(0)
    expect(back.out).toContain('4 of 4 claims moved from gold to silver.')
    expect(await classes(4)).toEqual(Array(4).fill('silver'))
    expect(await classOf('rich')).toBe('gold')
    for (let index = 0; index < 4; index++) {
      expect(await recordOf(`db-${index}`)).toBeNull()
      expect((await claim(`db-${index}`)).status.currentVolumeAttributesClassName).toBe('silver')
    }
    await expect(migrate({ undo: true })).rejects.toThrow('there is nothing to undo')
  })

  it('PLUS-4 undo works after a completed operation, and skips claims changed since', async () => {
    await someClaims(3)
    await migrate(FORWARD)
    expect((await recordOf('db-0')).closed).toBe(true)
    await fixture.patch(`${CLAIMS}/db-1`, { spec: { volumeAttributesClassName: 'bronze' } }, 'merge')
    const back = await migrate({ undo: true, from: 'silver' })
    expect(back.code, back.out).toBe(0)
    expect(await classes(3)).toEqual(['silver', 'bronze', 'silver'])
    expect(back.out).toContain('default/db-1: its class is now bronze; left unchanged')
    expect(await recordOf('db-1')).toBeNull()
  })

  it('PLUS-4 prints its progress when interrupted and resumes on any machine, undo included', async () => {
    await someClaims(6)
    for (const [flags, wanted] of [
      [FORWARD, 'gold'],
      [{ undo: true }, 'silver'],
    ] as const) {
      const stop = new AbortController()
      let started = 0
      controller = (_, className) => {
        if (++started === 3) stop.abort()
        return started >= 3 ? undefined : settled(className)
      }
      const cut = await migrate({ ...flags, parallel: '1' }, { signal: stop.signal })
      expect(cut.code).toBe(130)
      expect(cut.out).toContain('it continues in the cluster')
      const classesNow = await classes(6)
      expect(classesNow.filter((one) => one === wanted)).toHaveLength(3)
      controller = (_, className) => settled(className)
      await setStatus('db-2', settled(wanted))
      const rest = await migrate(flags)
      expect(rest.code, rest.out).toBe(0)
      expect(await classes(6)).toEqual(Array(6).fill(wanted))
    }
    for (let index = 0; index < 6; index++) expect(await recordOf(`db-${index}`)).toBeNull()
  })

  it('PLUS-4 fails a claim after --timeout with its latest message', async () => {
    await someClaims(1)
    controller = (_, wanted) => ({
      modifyVolumeStatus: { status: 'InProgress', targetVolumeAttributesClassName: wanted },
    })
    await fixture.post('/api/v1/namespaces/default/events', {
      metadata: { name: 'e' },
      involvedObject: { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'db-0' },
      type: 'Warning',
      reason: 'VolumeModifyFailed',
      message: 'the driver is not there',
      lastTimestamp: '2026-01-01T00:00:00Z',
    })
    const { code, out } = await migrate({ ...FORWARD, timeout: '2s' })
    expect([code, out]).toEqual([
      1,
      expect.stringContaining('not done within 2 s (the driver is modifying the volume; the driver is not there)'),
    ])
  })

  it('PLUS-4 does not repeat a write whose response was lost', async () => {
    await someClaims(3)
    let lost = 0
    const through: Client = {
      ...client,
      patch: async (kind, ref, patch, options) => {
        const written = await client.patch(kind, ref, patch, options)
        if (lost++ < 2) throw unavailable('the connection broke')
        return written
      },
    }
    const { code, out } = await migrate(FORWARD, { through })
    expect(code, out).toBe(0)
    expect(out).toContain('waiting for the server (the connection broke)')
    expect(await classes(3)).toEqual(['gold', 'gold', 'gold'])
  })

  it('PLUS-4 changes nothing if more claims than --max-failures cannot be moved', async () => {
    await someClaims(2)
    await aClaim('foreign', { driver: 'other.example.com' })
    const { code, out } = await migrate({ ...FORWARD, maxFailures: '0' })
    expect(code).toBe(1)
    expect(out).toContain(
      'its volume belongs to driver other.example.com, but class gold belongs to driver d.example.com',
    )
    expect(out).toContain('default/db-0     not begun  nothing was changed, because other claims cannot be moved')
    expect(await classes(2)).toEqual(['silver', 'silver'])
    const most = await migrate({ ...FORWARD, maxFailures: '1' })
    expect([most.code, await classes(2), await classOf('foreign')]).toEqual([1, ['gold', 'gold'], 'silver'])
  })

  it('PLUS-4 --dry-run validates on the server and changes nothing', async () => {
    await someClaims(2)
    const hard = { persistentvolumeclaims: '0' }
    const matchExpressions = [{ scopeName: 'VolumeAttributesClass', operator: 'In', values: ['gold'] }]
    const { code, out } = await migrate({ ...FORWARD, dryRun: true })
    expect([code, await classes(2), await recordOf('db-0')]).toEqual([0, ['silver', 'silver'], null])
    expect(out).toContain('Would move 2 claims; 0 would be refused. Nothing was changed.')
    await fixture.post('/api/v1/namespaces/default/resourcequotas', {
      metadata: { name: 'no-gold' },
      spec: { hard, scopeSelector: { matchExpressions } },
    })
    await fixture.patch(
      '/api/v1/namespaces/default/resourcequotas/no-gold/status',
      { status: { hard, used: hard } },
      'merge',
    )
    const refused = await migrate({ ...FORWARD, dryRun: true })
    expect(refused.code).toBe(1)
    expect(refused.out).toMatch(/default\/db-0 {2}refused {2}.*exceeded quota: no-gold/)
    expect(await classes(2)).toEqual(['silver', 'silver'])
  })

  it('PLUS-4 --output json prints one document', async () => {
    await someClaims(2)
    controller = (name, wanted) => (name === 'db-1' ? infeasible(wanted, 'no') : settled(wanted))
    const { code, out } = await migrate({ ...FORWARD, output: 'json' })
    expect(code).toBe(1)
    expect(JSON.parse(out)).toEqual({
      operation: expect.stringMatching(/^m-/),
      ...FORWARD,
      undo: false,
      dryRun: false,
      claims: [
        { namespace: 'default', name: 'db-0', result: 'moved', message: 'gold is in effect' },
        { namespace: 'default', name: 'db-1', result: 'failed', message: 'no; its volume is unchanged' },
      ],
    })
    const none = await migrate({ from: 'bronze', to: 'gold', output: 'json' })
    expect([none.code, JSON.parse(none.out).claims]).toEqual([0, []])
  })

  it('PLUS-4 draws a progress bar below finished claims on a terminal', async () => {
    await someClaims(3)
    const { out } = await migrate(FORWARD, { terminal: { columns: () => 80 } })
    expect(out).toContain('default/db-2: gold is in effect\n')
    expect(out).toMatch(/\[█+\] 100 % {2}3 of 3\n/)
  })

  it('PLUS-4 reports a missing class, an API that is not served, and a disabled feature gate', async () => {
    await someClaims(1)
    await expect(migrate({ from: 'silver', to: 'platinum' })).rejects.toThrow(
      'There is no VolumeAttributesClass platinum',
    )
    await end()
    const off = ['v1', 'v1beta1', 'v1alpha1'].map(
      (version) => `storage.k8s.io/${version}/volumeattributesclasses=false`,
    )
    fixture = await createServerFixture({ runtimeConfig: off.join(',') })
    await start()
    await expect(migrate(FORWARD)).rejects.toThrow('The server does not serve VolumeAttributesClasses')
    await end()
    const medium = memoryMedium()
    fixture = await createServerFixture({ medium })
    await start()
    await fixture.post(CLASSES, { metadata: { name: 'gold' }, driverName: 'd.example.com', parameters: { a: 'b' } })
    await aClaim('classed')
    await aClaim('plain', { className: '' })
    await end()
    fixture = await createServerFixture({ medium, gates: 'VolumeAttributesClass=false' })
    await start()
    const refused = await migrate(FORWARD)
    expect([refused.code, refused.out]).toEqual([
      1,
      expect.stringContaining('update is forbidden when the VolumeAttributesClass feature gate is disabled'),
    ])
    const dropped = await migrate({ from: '', to: 'gold' })
    expect([dropped.code, dropped.out]).toEqual([
      1,
      expect.stringContaining('the server dropped the class gold: is its feature gate VolumeAttributesClass disabled?'),
    ])
  })
})

describe('flags of stowage migrate', () => {
  const read = (flags: Partial<MigrateFlags>) => readRequest({ ...DEFAULTS, ...flags })

  it('PLUS-4 --rate is a count per second, minute or hour', () => {
    const interval = (rate: string) => read({ ...FORWARD, rate }).intervalMs
    expect(['5/s', '100/m', '0.5/s', '60/h'].map(interval)).toEqual([200, 600, 2_000, 60_000])
  })

  it.each([
    [{}, 'Give --from and --to'],
    [{ from: 'a', to: 'a' }, 'nothing would change'],
    [{ from: 'a', to: '' }, 'cannot return to none'],
    [{ from: 'A b', to: 'c' }, 'is not a class name'],
    [{ ...FORWARD, rate: '5' }, 'such as 5/s or 100/m'],
    [{ ...FORWARD, rate: '0/s' }, 'such as 5/s or 100/m'],
    [{ ...FORWARD, maxFailures: '-1' }, 'expected a whole number from 0'],
    [{ ...FORWARD, timeout: 'soon' }, 'expected a duration'],
    [{ ...FORWARD, selector: 'a=(' }, '--selector'],
    [{ ...FORWARD, operation: 'm-1' }, '--operation needs --undo'],
    [{ ...FORWARD, namespace: 'a', allNamespaces: true }, 'not both'],
  ])('SYS-10 rejects %o with a message', (flags, words) => {
    expect(() => read(flags)).toThrow(UsageError)
    expect(() => read(flags)).toThrow(words)
  })
})
