// Tests of `stowage migrate` with the API server in the same process. The tests act as the controller.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { unavailable } from '../../../api/status-error.ts'
import { inProcessClient, SYSTEM_USER } from '../../../apiserver/index.ts'
import { createServerFixture, type ServerFixture } from '../../../apiserver/server.fixture.ts'
import { UsageError } from '../../../base/usage-error.ts'
import type { Client } from '../../../client/index.ts'
import { memoryMedium } from '../../../store/index.ts'
import { ExitError } from '../../exit-error.ts'
import { type MigrateFlags, readRequest } from './command.ts'
import { MIGRATE_RECORD } from './record.ts'
import { migrateClaims } from './run.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const CLASSES = '/apis/storage.k8s.io/v1/volumeattributesclasses'

let fixture: ServerFixture
let client: Client
/** Returns the status that the controller writes for a requested class. By default the class takes effect. */
let controller: (name: string, className: string) => object | undefined
let stopController: AbortController
let controllerRun: Promise<void>

const modifiedStatus = (className: string) => ({
  currentVolumeAttributesClassName: className || null,
  modifyVolumeStatus: null,
  conditions: null,
})
const infeasibleStatus = (className: string, message: string) => ({
  modifyVolumeStatus: { status: 'Infeasible', targetVolumeAttributesClassName: className },
  conditions: [{ type: 'ModifyVolumeError', status: 'True', message }],
})

beforeEach(async () => {
  fixture = await createServerFixture()
  await setUp()
  for (const name of ['silver', 'gold', 'bronze']) {
    await fixture.post(CLASSES, { metadata: { name }, driverName: 'd.example.com', parameters: { tier: name } })
  }
})
afterEach(tearDown)

async function setUp() {
  client = inProcessClient(fixture.server.objects, SYSTEM_USER)
  controller = (_name, className) => modifiedStatus(className)
  stopController = new AbortController()
  controllerRun = runController()
}
async function tearDown() {
  stopController.abort()
  await controllerRun
  await fixture.store.close()
}

async function runController(): Promise<void> {
  const handledClasses = new Map<string, string>()
  for await (const event of client.watch(persistentVolumeClaimKind, { signal: stopController.signal })) {
    if (event.type === 'bookmark' || event.type === 'deleted') continue
    const { metadata, spec, status } = event.object
    const className = spec?.volumeAttributesClassName ?? ''
    const isSettled = className === (status?.currentVolumeAttributesClassName ?? '') && !status?.modifyVolumeStatus
    if (status?.phase !== 'Bound' || isSettled || handledClasses.get(metadata.name!) === className) continue
    handledClasses.set(metadata.name!, className)
    const newStatus = controller(metadata.name!, className)
    if (newStatus) await setStatus(metadata.name!, newStatus)
  }
}

const setStatus = async (name: string, status: object) => {
  const response = await fixture.patch(`${CLAIMS}/${name}/status`, { status }, 'merge')
  expect(response.status, response.text).toBe(200)
}

async function createClaim(
  name: string,
  { className = 'silver', labels = { app: 'db' }, driver = 'd.example.com' } = {},
) {
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
  const response = await fixture.post(CLAIMS, { metadata: { name, labels }, spec })
  expect(response.status, response.text).toBe(201)
  await setStatus(name, { phase: 'Bound', ...(className ? { currentVolumeAttributesClassName: className } : {}) })
}
const createClaims = async (count: number) => {
  for (let index = 0; index < count; index++) await createClaim(`db-${index}`)
}
const getClaim = async (name: string) => (await fixture.get(`${CLAIMS}/${name}`)).json
const readClass = async (name: string) => (await getClaim(name)).spec.volumeAttributesClassName
const readRecord = async (name: string) =>
  JSON.parse((await getClaim(name)).metadata.annotations?.[MIGRATE_RECORD] ?? 'null')
const listClasses = async (count: number) =>
  Promise.all(Array.from({ length: count }, (_, index) => readClass(`db-${index}`)))

interface Run {
  code: number
  out: string
}

const DEFAULTS = { rate: '1000/s', parallel: '50', maxFailures: '3', timeout: '10m', output: 'text' as const }
let randomCalls = 0

async function migrate(
  flags: Partial<MigrateFlags>,
  {
    signal = new AbortController().signal,
    commandClient = client,
    terminal = undefined as undefined | { columns(): number },
  } = {},
): Promise<Run> {
  let output = ''
  const write = (text: string) => {
    output += text
  }
  const random = () => ((++randomCalls * 7_919) % 1_000) / 1_000
  const request = readRequest({ ...DEFAULTS, ...flags })
  const deps = { clock: fixture.clock, random, signal, env: {}, terminal, write }
  let hasEnded = false
  const exitCode = migrateClaims(commandClient, request, request.selectsAllNamespaces ? undefined : 'default', deps)
    .then(
      () => 0,
      (error) => {
        if (error instanceof ExitError) return error.exitCode
        throw error
      },
    )
    .finally(() => {
      hasEnded = true
    })
  exitCode.catch(() => {})
  while (!hasEnded) {
    for (let i = 0; i < 5; i++) await fixture.clock.nextTurn()
    await fixture.clock.advance(1)
  }
  return { code: await exitCode, out: output }
}
const FORWARD = { from: 'silver', to: 'gold' }

describe('stowage migrate', () => {
  it('PLUS-4 moves all claims of a class and waits until the new one is in effect', async () => {
    await createClaims(3)
    await createClaim('other', { className: 'bronze' })
    const { code, out: output } = await migrate(FORWARD)
    expect(code, output).toBe(0)
    expect([await listClasses(3), await readClass('other')]).toEqual([['gold', 'gold', 'gold'], 'bronze'])
    expect(output).toMatch(/^Operation m-[0-9a-f]{8}: moving 3 claims from silver to gold, 1000\/s\.\n/)
    expect(output).toContain('default/db-0: gold is in effect\n')
    expect(output).toMatch(
      /3 of 3 claims moved from silver to gold\.\nTo undo: stowage migrate --undo --operation m-\w+ --namespace default\n/,
    )
  })

  it("PLUS-4 suggests --undo only if a claim's class was written", async () => {
    await createClaims(2)
    for (const name of ['db-0', 'db-1']) await setStatus(name, { phase: 'Lost' })
    const emptyRun = await migrate({ ...FORWARD, maxFailures: '5' })
    expect(emptyRun.code).toBe(1)
    expect(emptyRun.out).toContain(
      '0 of 2 claims moved from silver to gold, 2 failed. Run the same command again to continue.\n',
    )
    expect(emptyRun.out).not.toContain('--undo')

    await setStatus('db-0', { phase: 'Bound' })
    controller = (_, className) => infeasibleStatus(className, 'iops too high')
    const rejectedRun = await migrate({ ...FORWARD, maxFailures: '5' })
    expect(rejectedRun.out).toContain('0 of 2 claims moved')
    expect(rejectedRun.out).toMatch(
      /or undo the operation:\n {2}stowage migrate --undo --operation m-\w+ --namespace default\n/,
    )
  })

  it('PLUS-4 does not suggest --undo if it is interrupted before the first class is written', async () => {
    await createClaims(1)
    const stop = new AbortController()
    const commandClient: Client = {
      ...client,
      patch: async () => {
        stop.abort()
        throw unavailable('the server is down')
      },
    }
    const { code, out: output } = await migrate(FORWARD, { commandClient, signal: stop.signal })
    expect(code).toBe(130)
    expect(output).toContain('unfinished: starting; the server has not confirmed the change')
    expect(output).not.toContain('--undo')
  })

  it('PLUS-4 selects claims by label and in all namespaces', async () => {
    await createClaims(1)
    await createClaim('web', { labels: { app: 'web' } })
    expect((await migrate({ ...FORWARD, selector: 'app=db' })).code).toBe(0)
    expect([await readClass('db-0'), await readClass('web')]).toEqual(['gold', 'silver'])
    expect((await migrate({ ...FORWARD, allNamespaces: true })).code).toBe(0)
    expect(await readClass('web')).toBe('gold')
  })

  it('PLUS-4 starts claims at the rate of --rate', async () => {
    await createClaims(5)
    const startedMs: number[] = []
    controller = (_, className) => {
      startedMs.push(fixture.clock.monotonicMs())
      return modifiedStatus(className)
    }
    await migrate({ ...FORWARD, rate: '2/s' })
    const gaps = startedMs.slice(1).map((ms, index) => ms - startedMs[index]!)
    expect(gaps).toHaveLength(4)
    for (const gap of gaps) expect(gap).toBeGreaterThanOrEqual(490)
  })

  it('PLUS-4 pauses after too many failures with their reasons, and continues in the next run', async () => {
    await createClaims(10)
    controller = (name, className) =>
      ['db-1', 'db-2'].includes(name) ? infeasibleStatus(className, 'iops too high') : modifiedStatus(className)
    const pausedRun = await migrate({ ...FORWARD, maxFailures: '1', parallel: '1' })
    expect(pausedRun.code).toBe(1)
    expect(pausedRun.out).toContain('default/db-1: FAILED: iops too high; the volume is unchanged\n')
    expect(pausedRun.out).toContain(
      '1 of 10 claims moved from silver to gold, 2 failed. Paused, because more than 1 failed.',
    )
    expect(pausedRun.out).toMatch(/default\/db-9 {2}not begun {2}stopped after earlier failures/)
    expect(await listClasses(10)).toEqual(['gold', 'gold', 'gold', ...Array(7).fill('silver')])

    await setStatus('db-1', modifiedStatus('gold')) // the driver accepts the class now
    await setStatus('db-2', modifiedStatus('gold'))
    const secondRun = await migrate({ ...FORWARD, maxFailures: '1' })
    expect(secondRun.code, secondRun.out).toBe(0)
    expect(secondRun.out).toContain('moving 7 claims from silver to gold, 1000/s. Resuming an interrupted run.')
    expect(secondRun.out).toContain('10 of 10 claims moved')
    const ids = new Set(await Promise.all(Array.from({ length: 10 }, async (_, i) => (await readRecord(`db-${i}`)).id)))
    expect(ids.size).toBe(1)
  })

  it('PLUS-4 waits for the next attempt of a claim that an earlier run left infeasible', async () => {
    await createClaims(3)
    controller = (name, className) =>
      name === 'db-1' ? infeasibleStatus(className, 'iops too high') : modifiedStatus(className)
    expect((await migrate({ ...FORWARD, maxFailures: '0', parallel: '1' })).code).toBe(1)
    controller = (name, className) => {
      // The driver accepts the class now: the resizer repeats its call while the other claim moves.
      if (name === 'db-2') void setStatus('db-1', { ...modifiedStatus('gold'), conditions: null })
      return modifiedStatus(className)
    }
    const secondRun = await migrate({ ...FORWARD, maxFailures: '0' })
    expect(secondRun.out).toContain('waiting for the next attempt: iops too high')
    expect(secondRun.code, secondRun.out).toBe(0)
  })

  it('PLUS-4 with --undo, moves back only the claims that the operation moved, and removes all records', async () => {
    await createClaims(4)
    await createClaim('already-gold', { className: 'gold' })
    controller = (name, className) =>
      name === 'db-2' && className === 'gold' ? infeasibleStatus(className, 'no') : modifiedStatus(className)
    expect((await migrate(FORWARD)).code).toBe(1)
    const undoRun = await migrate({ undo: true })
    expect(undoRun.code, undoRun.out).toBe(0)
    expect(undoRun.out).toContain('4 of 4 claims moved from gold to silver.')
    expect(await listClasses(4)).toEqual(Array(4).fill('silver'))
    expect(await readClass('already-gold')).toBe('gold')
    for (let index = 0; index < 4; index++) {
      expect(await readRecord(`db-${index}`)).toBeNull()
      expect((await getClaim(`db-${index}`)).status.currentVolumeAttributesClassName).toBe('silver')
    }
    await expect(migrate({ undo: true })).rejects.toThrow('there is nothing to undo')
  })

  it('PLUS-4 undoes a completed operation and skips claims that were changed since', async () => {
    await createClaims(3)
    await migrate(FORWARD)
    expect((await readRecord('db-0')).closed).toBe(true)
    await fixture.patch(`${CLAIMS}/db-1`, { spec: { volumeAttributesClassName: 'bronze' } }, 'merge')
    const undoRun = await migrate({ undo: true, from: 'silver' })
    expect(undoRun.code, undoRun.out).toBe(0)
    expect(await listClasses(3)).toEqual(['silver', 'bronze', 'silver'])
    expect(undoRun.out).toContain('default/db-1: the class is now bronze; left unchanged')
    expect(undoRun.out).toContain(
      '2 of 3 claims moved from gold to silver, 1 left unchanged, because another client changed it.',
    )
    expect(await readRecord('db-1')).toBeNull()
  })

  it('PLUS-4 resumes an interrupted migrate and an interrupted --undo', async () => {
    await createClaims(6)
    for (const [flags, finalClass] of [
      [FORWARD, 'gold'],
      [{ undo: true }, 'silver'],
    ] as const) {
      const stop = new AbortController()
      let startCount = 0
      controller = (_, className) => {
        if (++startCount === 3) stop.abort()
        return startCount >= 3 ? undefined : modifiedStatus(className)
      }
      const interruptedRun = await migrate({ ...flags, parallel: '1' }, { signal: stop.signal })
      expect(interruptedRun.code).toBe(130)
      expect(interruptedRun.out).toContain('the change continues in the cluster')
      const classesNow = await listClasses(6)
      expect(classesNow.filter((className) => className === finalClass)).toHaveLength(3)
      controller = (_, className) => modifiedStatus(className)
      await setStatus('db-2', modifiedStatus(finalClass))
      const resumedRun = await migrate(flags)
      expect(resumedRun.code, resumedRun.out).toBe(0)
      expect(await listClasses(6)).toEqual(Array(6).fill(finalClass))
    }
    for (let index = 0; index < 6; index++) expect(await readRecord(`db-${index}`)).toBeNull()
  })

  it('PLUS-4 reports a claim as failed after --timeout, with its latest status and warning', async () => {
    await createClaims(1)
    controller = (_, className) => ({
      modifyVolumeStatus: { status: 'InProgress', targetVolumeAttributesClassName: className },
    })
    await fixture.post('/api/v1/namespaces/default/events', {
      metadata: { name: 'e' },
      involvedObject: { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'db-0' },
      type: 'Warning',
      reason: 'VolumeModifyFailed',
      message: 'the driver is unavailable',
      lastTimestamp: '2026-01-01T00:00:00Z',
    })
    const { code, out: output } = await migrate({ ...FORWARD, timeout: '2s' })
    expect([code, output]).toEqual([
      1,
      expect.stringContaining('not done within 2 s (the driver is modifying the volume; the driver is unavailable)'),
    ])
  })

  it('PLUS-4 writes the class of each claim once, even though responses are lost', async () => {
    await createClaims(3)
    const writtenClaims: string[] = []
    const commandClient: Client = {
      ...client,
      patch: async (kind, ref, patch, options) => {
        const updatedClaim = await client.patch(kind, ref, patch, options)
        if (!JSON.stringify(patch).includes('volumeAttributesClassName')) return updatedClaim // only the record
        if (writtenClaims.push(ref.name) <= 2) throw unavailable('the connection broke')
        return updatedClaim
      },
    }
    const { code, out: output } = await migrate(FORWARD, { commandClient })
    expect(code, output).toBe(0)
    expect(output).toContain('waiting for the server (the connection broke)')
    expect(await listClasses(3)).toEqual(['gold', 'gold', 'gold'])
    expect(writtenClaims.sort()).toEqual(['db-0', 'db-1', 'db-2'])
  })

  it('PLUS-4 closes the records in the next run if a response to closing them is lost', async () => {
    await createClaims(2)
    let isLost = false
    const commandClient: Client = {
      ...client,
      patch: async (kind, ref, patch, options) => {
        if (isLost || JSON.stringify(patch).includes('volumeAttributesClassName'))
          return client.patch(kind, ref, patch, options)
        isLost = true
        throw unavailable('the connection broke')
      },
    }
    await expect(migrate(FORWARD, { commandClient })).rejects.toThrow(
      'Cannot update the record on all claims (the connection broke): run the same command again.',
    )
    expect((await migrate(FORWARD)).code).toBe(0)
    for (const name of ['db-0', 'db-1']) expect((await readRecord(name)).closed).toBe(true)
  })

  it('PLUS-4 changes nothing if more claims than --max-failures cannot be moved', async () => {
    await createClaims(2)
    await createClaim('foreign', { driver: 'other.example.com' })
    const { code, out: output } = await migrate({ ...FORWARD, maxFailures: '0' })
    expect(code).toBe(1)
    expect(output).toContain(
      'the volume belongs to driver other.example.com, but class gold belongs to driver d.example.com',
    )
    expect(output).toContain('default/db-0     not begun  nothing was changed, because other claims cannot be moved')
    expect(await listClasses(2)).toEqual(['silver', 'silver'])
    const tolerantRun = await migrate({ ...FORWARD, maxFailures: '1' })
    expect([tolerantRun.code, await listClasses(2), await readClass('foreign')]).toEqual([
      1,
      ['gold', 'gold'],
      'silver',
    ])
  })

  it('PLUS-4 validates on the server and changes nothing with --dry-run', async () => {
    await createClaims(2)
    const hard = { persistentvolumeclaims: '0' }
    const matchExpressions = [{ scopeName: 'VolumeAttributesClass', operator: 'In', values: ['gold'] }]
    const { code, out: output } = await migrate({ ...FORWARD, dryRun: true })
    expect([code, await listClasses(2), await readRecord('db-0')]).toEqual([0, ['silver', 'silver'], null])
    expect(output).toContain('Would move 2 claims; 0 would be refused. Nothing was changed.')
    await fixture.post('/api/v1/namespaces/default/resourcequotas', {
      metadata: { name: 'no-gold' },
      spec: { hard, scopeSelector: { matchExpressions } },
    })
    await fixture.patch(
      '/api/v1/namespaces/default/resourcequotas/no-gold/status',
      { status: { hard, used: hard } },
      'merge',
    )
    const rejectedRun = await migrate({ ...FORWARD, dryRun: true })
    expect(rejectedRun.code).toBe(1)
    expect(rejectedRun.out).toMatch(/default\/db-0 {2}refused {2}.*exceeded quota: no-gold/)
    expect(await listClasses(2)).toEqual(['silver', 'silver'])
  })

  it('PLUS-4 prints one JSON document with --output json', async () => {
    await createClaims(2)
    controller = (name, className) => (name === 'db-1' ? infeasibleStatus(className, 'no') : modifiedStatus(className))
    const { code, out: output } = await migrate({ ...FORWARD, output: 'json' })
    expect(code).toBe(1)
    expect(JSON.parse(output)).toEqual({
      operation: expect.stringMatching(/^m-/),
      ...FORWARD,
      undo: false,
      dryRun: false,
      claims: [
        { namespace: 'default', name: 'db-0', result: 'moved', message: 'gold is in effect' },
        { namespace: 'default', name: 'db-1', result: 'failed', message: 'no; the volume is unchanged' },
      ],
    })
    const emptyRun = await migrate({ from: 'bronze', to: 'gold', output: 'json' })
    expect([emptyRun.code, JSON.parse(emptyRun.out).claims]).toEqual([0, []])
  })

  it('PLUS-4 draws a progress bar below finished claims on a terminal', async () => {
    await createClaims(3)
    const { out: output } = await migrate(FORWARD, { terminal: { columns: () => 80 } })
    expect(output).toContain('default/db-2: gold is in effect\n')
    expect(output).toMatch(/\[█+\] 100 % {2}3 of 3\n/)
  })

  it('PLUS-4 reports a missing class, an API that is not served, and a disabled feature gate', async () => {
    await createClaims(1)
    await expect(migrate({ from: 'silver', to: 'platinum' })).rejects.toThrow(
      'There is no VolumeAttributesClass platinum',
    )
    await tearDown()
    const disabledVersions = ['v1', 'v1beta1', 'v1alpha1'].map(
      (version) => `storage.k8s.io/${version}/volumeattributesclasses=false`,
    )
    fixture = await createServerFixture({ runtimeConfig: disabledVersions.join(',') })
    await setUp()
    await expect(migrate(FORWARD)).rejects.toThrow('The server does not serve VolumeAttributesClasses')
    await tearDown()
    const medium = memoryMedium()
    fixture = await createServerFixture({ medium })
    await setUp()
    await fixture.post(CLASSES, { metadata: { name: 'gold' }, driverName: 'd.example.com', parameters: { a: 'b' } })
    await createClaim('classed')
    await createClaim('plain', { className: '' })
    await tearDown()
    fixture = await createServerFixture({ medium, gates: 'VolumeAttributesClass=false' })
    await setUp()
    const rejectedRun = await migrate(FORWARD)
    expect([rejectedRun.code, rejectedRun.out]).toEqual([
      1,
      expect.stringContaining('update is forbidden when the VolumeAttributesClass feature gate is disabled'),
    ])
    const droppedRun = await migrate({ from: '', to: 'gold' })
    expect([droppedRun.code, droppedRun.out]).toEqual([
      1,
      expect.stringContaining(
        'the server dropped the class gold; its feature gate VolumeAttributesClass may be disabled',
      ),
    ])
  })
})

describe('readRequest', () => {
  const readFlags = (flags: Partial<MigrateFlags>) => readRequest({ ...DEFAULTS, ...flags })

  it('PLUS-4 parses --rate as a count per second, minute or hour', () => {
    const intervalOf = (rate: string) => readFlags({ ...FORWARD, rate }).intervalMs
    expect(['5/s', '100/m', '0.5/s', '60/h'].map(intervalOf)).toEqual([200, 600, 2_000, 60_000])
  })

  it.each([
    [{}, 'Set --from and --to'],
    [{ from: 'a', to: 'a' }, 'nothing would change'],
    [{ from: 'a', to: '' }, 'cannot be changed to have none'],
    [{ from: 'A b', to: 'c' }, 'is not a class name'],
    [{ ...FORWARD, rate: '5' }, 'such as 5/s or 100/m'],
    [{ ...FORWARD, rate: '0/s' }, 'such as 5/s or 100/m'],
    [{ ...FORWARD, maxFailures: '-1' }, 'expected a whole number from 0'],
    [{ ...FORWARD, timeout: 'soon' }, 'expected a duration'],
    [{ ...FORWARD, selector: 'a=(' }, '--selector'],
    [{ ...FORWARD, operation: 'm-1' }, '--operation requires --undo'],
    [{ ...FORWARD, namespace: 'a', allNamespaces: true }, 'not both'],
  ])('rejects the flags %j with a message that contains %j', (flags, message) => {
    expect(() => readFlags(flags)).toThrow(UsageError)
    expect(() => readFlags(flags)).toThrow(message)
  })
})
