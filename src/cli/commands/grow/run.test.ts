// Tests of `stowage grow` with the API server in the same process. The tests act as the resize controller.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { podKind } from '../../../api/kinds/pod/pod.ts'
import { unavailable } from '../../../api/status-error.ts'
import { inProcessClient, SYSTEM_USER } from '../../../apiserver/index.ts'
import { createServerFixture, type ServerFixture } from '../../../apiserver/server.fixture.ts'
import type { Client } from '../../../client/index.ts'
import { ExitError } from '../../exit-error.ts'
import { type GrowFlags, readRequest, readUndoRequest } from './command.ts'
import { GROW_RECORD } from './record.ts'
import { growClaims } from './run.ts'
import { undoGrowth } from './undo.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'

let fixture: ServerFixture
let client: Client
/** Returns the status that the controller writes for a requested size. By default the volume gets the size. */
let controller: (name: string, requestedSize: string) => object | undefined
let stopController: AbortController
let controllerRun: Promise<void>

beforeEach(async () => {
  fixture = await createServerFixture()
  client = inProcessClient(fixture.server.objects, SYSTEM_USER)
  await fixture.post('/apis/storage.k8s.io/v1/storageclasses', {
    metadata: { name: 'expandable' },
    provisioner: 'd.example.com',
    allowVolumeExpansion: true,
  })
  controller = (_name, storage) => ({ capacity: { storage } })
  stopController = new AbortController()
  controllerRun = runController()
})
afterEach(async () => {
  stopController.abort()
  await controllerRun
  await fixture.store.close()
})

async function runController(): Promise<void> {
  const handledSizes = new Map<string, string>()
  for await (const event of client.watch(persistentVolumeClaimKind, { signal: stopController.signal })) {
    if (event.type === 'bookmark' || event.type === 'deleted') continue
    const { metadata, spec, status } = event.object
    const requestedSize = spec?.resources?.requests?.storage ?? ''
    if (status?.phase !== 'Bound' || requestedSize === status.capacity?.storage) continue
    if (handledSizes.get(metadata.name!) === requestedSize) continue
    handledSizes.set(metadata.name!, requestedSize)
    const newStatus = controller(metadata.name!, requestedSize)
    if (newStatus) await setStatus(metadata.name!, newStatus)
  }
}

const setStatus = async (name: string, status: object) => {
  const response = await fixture.patch(`${CLAIMS}/${name}/status`, { status }, 'merge')
  expect(response.status, response.text).toBe(200)
}

const createClaim = async (name: string, { size = '10Gi', labels = { app: 'db' }, className = 'expandable' } = {}) => {
  const spec = {
    accessModes: ['ReadWriteOnce'],
    storageClassName: className,
    resources: { requests: { storage: size } },
  }
  const response = await fixture.post(CLAIMS, { metadata: { name, labels }, spec })
  expect(response.status, response.text).toBe(201)
  await setStatus(name, { phase: 'Bound', capacity: { storage: size } })
}
const getClaim = async (name: string) => (await fixture.get(`${CLAIMS}/${name}`)).json
const requestOf = async (name: string) => (await getClaim(name)).spec.resources.requests.storage
const readRecord = async (name: string) =>
  JSON.parse((await getClaim(name)).metadata.annotations?.[GROW_RECORD] ?? 'null')

let randomCalls = 0
const random = () => ((++randomCalls * 48_271) % 2_147_483_647) / 2_147_483_647

interface Run {
  code: number
  out: string
}

function grow(
  flags: Partial<GrowFlags> & { names?: string[] },
  { signal = new AbortController().signal, commandClient = client, write = (_text: string): unknown => '' } = {},
): Promise<Run> {
  let output = ''
  const { names = [], ...otherFlags } = flags
  const defaults = { parallel: '1', interval: '0s', timeout: '10m', maxFailures: '0', output: 'text' as const }
  const request = { ...readRequest(names, { ...defaults, ...otherFlags }), namespace: 'default' }
  const record = (text: string) => {
    output += text
    write(text)
  }
  const deps = { clock: fixture.clock, random, signal, env: {}, terminal: undefined, write: record }
  return growClaims(commandClient, request, deps).then(
    () => ({ code: 0, out: output }),
    (error) => {
      if (error instanceof ExitError) return { code: error.exitCode, out: output }
      throw error
    },
  )
}

async function waitFor(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 2_000; i++) {
    if (await condition()) return
    await fixture.clock.nextTurn()
  }
  throw new Error('the condition did not become true')
}

describe('stowage grow', () => {
  it('PLUS-13 expands one claim and prints its progress', async () => {
    await createClaim('orders')
    const { code, out: output } = await grow({ names: ['orders'], to: '20Gi' })
    expect(code).toBe(0)
    expect(await requestOf('orders')).toBe('20Gi')
    expect(output).toContain('default/orders: grown to 20Gi\n')
    expect(output).toContain('orders  10Gi  20Gi  grown\n\nThe claim has the requested size.\n')
  })

  it('PLUS-13 expands all claims with a label in natural order, one at a time', async () => {
    for (const name of ['db-10', 'db-2', 'db-1']) await createClaim(name)
    await createClaim('other', { labels: { app: 'web' } })
    const order: string[] = []
    controller = (name, storage) => {
      order.push(name)
      return { capacity: { storage } }
    }
    expect((await grow({ selector: 'app=db', to: '20Gi' })).code).toBe(0)
    expect(order).toEqual(['db-1', 'db-2', 'db-10'])
    expect(await requestOf('other')).toBe('10Gi')
  })

  it('PLUS-13 limits the number of claims in progress with --parallel', async () => {
    const names = ['a', 'b', 'c', 'd', 'e']
    for (const name of names) await createClaim(name)
    controller = () => undefined
    const runPromise = grow({ selector: 'app=db', to: '20Gi', parallel: '2' })
    const findGrowing = async () => {
      const sizes = await Promise.all(names.map(requestOf))
      return names.filter((_, index) => sizes[index] === '20Gi')
    }
    await waitFor(async () => (await findGrowing()).length === 2)
    for (let i = 0; i < 50; i++) await fixture.clock.nextTurn()
    expect(await findGrowing()).toEqual(['a', 'b'])
    controller = (_name, storage) => ({ capacity: { storage } })
    for (const name of ['a', 'b']) await setStatus(name, { capacity: { storage: '20Gi' } })
    expect((await runPromise).code).toBe(0)
    expect(await findGrowing()).toEqual(names)
  })

  it('PLUS-13 waits between two starts with --interval', async () => {
    for (const name of ['a', 'b']) await createClaim(name)
    const runPromise = grow({ selector: 'app=db', to: '20Gi', parallel: '2', interval: '1m' })
    await waitFor(async () => (await requestOf('a')) === '20Gi')
    for (let i = 0; i < 50; i++) await fixture.clock.nextTurn()
    expect(await requestOf('b')).toBe('10Gi')
    await fixture.clock.advance(60_000)
    expect((await runPromise).code).toBe(0)
    expect(await requestOf('b')).toBe('20Gi')
  })

  it('PLUS-13 stops at the first failure with its reason, and continues in the next run', async () => {
    for (const name of ['a', 'b', 'c']) await createClaim(name)
    const infeasibleStatus = (storage: string) => ({
      allocatedResources: { storage },
      allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' },
      conditions: [{ type: 'ControllerResizeError', status: 'True', message: 'the pool has 5Gi left' }],
    })
    controller = (name, storage) => (name === 'b' ? infeasibleStatus(storage) : { capacity: { storage } })
    const { code, out: output } = await grow({ selector: 'app=db', to: '20Gi' })
    expect(code).toBe(1)
    expect(output).toContain('default/b: FAILED: the pool has 5Gi left')
    expect(output).toContain('c      10Gi  20Gi  not begun  stopped after earlier failures')
    expect(output).toContain('1 of 3 claims have the requested size, 1 failed. Run the same command again to continue.')
    expect(output).toMatch(
      /The request of b stays raised.*\n {2}stowage grow --undo --selector app=db --namespace default\n$/,
    )
    expect(await requestOf('c')).toBe('10Gi')

    await setStatus('b', { allocatedResourceStatuses: null, conditions: null, capacity: { storage: '20Gi' } })
    const secondRun = await grow({ selector: 'app=db', to: '20Gi' })
    expect(secondRun.code).toBe(0)
    expect(secondRun.out).toContain('a      20Gi  20Gi  unchanged')
    expect(await requestOf('c')).toBe('20Gi')
  })

  it('PLUS-13 waits for the next attempt of a claim that an earlier run left infeasible', async () => {
    await createClaim('a')
    controller = (_name, storage) => ({
      allocatedResources: { storage },
      allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' },
    })
    expect((await grow({ names: ['a'], to: '20Gi' })).code).toBe(1)
    let text = ''
    const write = (part: string) => {
      text += part
    }
    const secondRun = grow({ names: ['a'], to: '20Gi' }, { write })
    await waitFor(() => text.includes('waiting for the next attempt'))
    await setStatus('a', { allocatedResourceStatuses: null, capacity: { storage: '20Gi' } }) // the driver accepts it now
    expect((await secondRun).code).toBe(0)
  })

  it('PLUS-13 --undo lowers only the requests that did not succeed', async () => {
    for (const name of ['a', 'b']) await createClaim(name)
    const infeasibleStatus = (storage: string) => ({
      allocatedResources: { storage },
      allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' },
    })
    controller = (name, storage) => (name === 'b' ? infeasibleStatus(storage) : { capacity: { storage } })
    await grow({ selector: 'app=db', by: '10Gi' })
    expect(await requestOf('b')).toBe('20Gi')
    let output = ''
    const write = (text: string) => {
      output += text
    }
    const deps = {
      clock: fixture.clock,
      random,
      signal: new AbortController().signal,
      env: {},
      terminal: undefined,
      write,
    }
    const flags = {
      selector: 'app=db',
      parallel: '1',
      interval: '0s',
      timeout: '10m',
      maxFailures: '0',
      output: 'text' as const,
    }
    await undoGrowth(client, { ...readUndoRequest([], { ...flags, dryRun: true }), namespace: 'default' }, deps)
    expect(await requestOf('b')).toBe('20Gi')
    await undoGrowth(client, { ...readUndoRequest([], flags), namespace: 'default' }, deps)
    expect(output).toContain('default/b  lowered    the request went from 20Gi to 10Gi, the size of the volume')
    expect(output).toContain('default/a  unchanged  the volume has 20Gi')
    expect([await requestOf('a'), await requestOf('b')]).toEqual(['20Gi', '10Gi'])
    expect(await readRecord('b')).toBeNull()
    expect(() => readUndoRequest([], { ...flags, to: '1Gi' })).toThrow('Set --undo without --to or --by.')
  })

  it('PLUS-13 continues after failures up to --max-failures', async () => {
    for (const name of ['a', 'b', 'c', 'd']) await createClaim(name)
    controller = (name, storage) =>
      'ac'.includes(name)
        ? { allocatedResources: { storage }, allocatedResourceStatuses: { storage: 'NodeResizeInfeasible' } }
        : { capacity: { storage } }
    const { code, out: output } = await grow({ selector: 'app=db', to: '20Gi', maxFailures: '1' })
    expect(code).toBe(1)
    expect(await Promise.all(['a', 'b', 'c', 'd'].map(requestOf))).toEqual(['20Gi', '20Gi', '20Gi', '10Gi'])
    expect(output).toContain('the node cannot expand the volume to 20Gi')
  })

  it('PLUS-13 changes no claim if the server would reject one of them', async () => {
    await createClaim('a')
    await createClaim('b', { className: 'fixed' })
    const { code, out: output } = await grow({ selector: 'app=db', to: '20Gi' })
    expect(code).toBe(1)
    expect(output).toContain('the storageclass that provisions the pvc must support resize')
    expect(output).toContain('nothing was changed, because other claims cannot grow')
    expect(output).not.toContain('stays raised')
    expect(await requestOf('a')).toBe('10Gi')
    const secondRun = await grow({ selector: 'app=db', to: '20Gi', maxFailures: '1' })
    expect(secondRun.code, 'with --max-failures').toBe(1)
    expect(secondRun.out).not.toContain('stays raised')
    expect(await requestOf('a')).toBe('20Gi')
  })

  it('PLUS-13 validates on the server and changes nothing with --dry-run', async () => {
    await createClaim('a')
    await createClaim('b', { size: '30Gi' })
    const revisionBefore = fixture.store.revision
    const { code, out: output } = await grow({ selector: 'app=db', to: '20Gi', dryRun: true })
    expect(code).toBe(0)
    expect(output).toBe(
      '\nCLAIM  FROM  TO    RESULT      MESSAGE\na      10Gi  20Gi  would grow\nb      30Gi  20Gi  unchanged   already has 30Gi\n',
    )
    const quota = { metadata: { name: 'q' }, spec: { hard: { 'requests.storage': '45Gi' } } }
    await fixture.post('/api/v1/namespaces/default/resourcequotas', quota)
    const rejectedRun = await grow({ names: ['a'], to: '20Gi', dryRun: true })
    expect(rejectedRun.code).toBe(1)
    expect(rejectedRun.out).toContain('refused  persistentvolumeclaims "a" is forbidden: exceeded quota: q')
    expect(fixture.store.revision).toBeLessThan(revisionBefore + 10)
    expect(await requestOf('a')).toBe('10Gi')
  })

  it('PLUS-13 prints one JSON document with --output json', async () => {
    await createClaim('a')
    const { out: output } = await grow({ names: ['a'], to: '20Gi', output: 'json' })
    expect(JSON.parse(output)).toEqual({
      dryRun: false,
      claims: [
        { namespace: 'default', name: 'a', from: '10Gi', to: '20Gi', result: 'grown', message: 'grown to 20Gi' },
      ],
    })
  })

  it('PLUS-13 reports a claim as failed after --timeout, with its latest warning', async () => {
    await createClaim('a')
    controller = () => undefined
    const { uid } = (await getClaim('a')).metadata
    await fixture.post('/api/v1/namespaces/default/events', {
      metadata: { name: 'e' },
      involvedObject: { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'a', uid },
      type: 'Warning',
      reason: 'VolumeResizeFailed',
      message: 'the driver is unavailable',
    })
    const runPromise = grow({ names: ['a'], to: '20Gi', timeout: '5m' })
    await waitFor(async () => (await requestOf('a')) === '20Gi')
    const { code, out: output } = await fixture.advanceUntilSettled(runPromise)
    expect(code).toBe(1)
    expect(output).toContain(
      'FAILED: not done within 300 s (requested; the driver is unavailable); the change continues in the cluster',
    )
  })

  it('PLUS-13 does not report an unconfirmed request as raised after --timeout', async () => {
    await createClaim('a')
    const commandClient: Client = {
      ...client,
      patch: async (kind, ref, patch, options) => {
        if (options?.dryRun) return client.patch(kind, ref, patch, options)
        throw unavailable('the server is down')
      },
    }
    const { code, out: output } = await fixture.advanceUntilSettled(
      grow({ names: ['a'], to: '20Gi', timeout: '5m' }, { commandClient }),
    )
    expect(code).toBe(1)
    expect(output).toContain(
      'FAILED: not done within 300 s (waiting for the server (the server is down)); the server has not confirmed the change',
    )
    expect(output).not.toContain('stays raised')
  })

  it('PLUS-13 waits for a node only if a pod uses the claim', async () => {
    await createClaim('idle')
    await createClaim('busy')
    controller = (_name, storage) => ({
      allocatedResources: { storage },
      allocatedResourceStatuses: { storage: 'NodeResizePending' },
    })
    const idleRun = await grow({ names: ['idle'], to: '20Gi' })
    expect(idleRun).toMatchObject({ code: 0 })
    expect(idleRun.out).toContain('volume expanded to 20Gi; the file system is expanded when a pod next uses it')

    await client.create(podKind, {
      metadata: { namespace: 'default', name: 'user' },
      spec: {
        nodeName: 'n1',
        containers: [{ name: 'c', image: 'i' }],
        volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'busy' } }],
      },
    } as never)
    let hasEnded = false
    const busyRun = grow({ names: ['busy'], to: '20Gi' })
    void busyRun.then(() => {
      hasEnded = true
    })
    await waitFor(async () => (await getClaim('busy')).status.allocatedResourceStatuses !== undefined)
    for (let i = 0; i < 50; i++) await fixture.clock.nextTurn()
    expect(hasEnded).toBe(false)
    await setStatus('busy', { capacity: { storage: '20Gi' }, allocatedResourceStatuses: null })
    expect((await busyRun).out).toContain(
      'default/busy: waiting for node n1 to expand the file system\ndefault/busy: grown to 20Gi',
    )
  })

  it('PLUS-13 reports a claim as failed if its earlier expansion waits for a pod', async () => {
    await createClaim('idle')
    controller = () => ({
      allocatedResources: { storage: '15Gi' },
      allocatedResourceStatuses: { storage: 'NodeResizePending' },
    })
    const { code, out: output } = await grow({ names: ['idle'], to: '20Gi' })
    expect(code).toBe(1)
    expect(output).toContain(
      'FAILED: an earlier expansion to 15Gi waits for a pod to use the volume; the expansion to 20Gi follows',
    )
  })

  it('PLUS-13 retries while the server is unreachable and writes the size once', async () => {
    await createClaim('a')
    let failures = 0
    let patches = 0
    // The first response is lost after the write, then the server is unreachable.
    const commandClient: Client = {
      ...client,
      get: async (kind, ref, options) => {
        if (failures === 1) {
          failures++
          throw unavailable('the server is down')
        }
        return client.get(kind, ref, options)
      },
      patch: async (kind, ref, patch, options) => {
        const updatedClaim = await client.patch(kind, ref, patch, options)
        if (options?.dryRun) return updatedClaim
        patches++
        if (failures++ === 0) throw unavailable('the connection broke')
        return updatedClaim
      },
    }
    const { code, out: output } = await fixture.advanceUntilSettled(
      grow({ names: ['a'], by: '5Gi' }, { commandClient }),
    )
    expect(code).toBe(0)
    expect(await requestOf('a')).toBe('15Gi')
    expect(patches).toBe(2) // the size, and the closed record
    expect(output).toContain('waiting for the server (the connection broke)')
  })

  it('PLUS-13 does not overwrite a concurrent change', async () => {
    await createClaim('a')
    let isFirst = true
    const commandClient: Client = {
      ...client,
      patch: async (kind, ref, patch, options) => {
        if (!options?.dryRun && isFirst) {
          isFirst = false
          await fixture.patch(`${CLAIMS}/a`, { spec: { resources: { requests: { storage: '30Gi' } } } }, 'merge')
        }
        return client.patch(kind, ref, patch, options)
      },
    }
    const { out: output } = await grow({ names: ['a'], to: '20Gi' }, { commandClient })
    expect(await requestOf('a')).toBe('30Gi')
    expect(output).toMatch(/unchanged|already requests 30Gi/)
  })

  it('PLUS-13 reports a deleted claim as failed', async () => {
    await createClaim('a')
    controller = () => undefined
    const runPromise = grow({ names: ['a'], to: '20Gi' })
    await waitFor(async () => (await requestOf('a')) === '20Gi')
    await fixture.patch(`${CLAIMS}/a`, { metadata: { finalizers: null } }, 'merge')
    await fixture.delete(`${CLAIMS}/a`)
    const { out: output } = await runPromise
    expect(output).toMatch(/FAILED: the claim (was|is being) deleted/)
    expect(output).not.toContain('stays raised')
  })

  it.each<[string, Partial<GrowFlags> & { names?: string[] }, RegExp]>([
    ['a missing claim', { names: ['ghost'], to: '1Gi' }, /There is no claim ghost in namespace default/],
    [
      'a selector without matches',
      { selector: 'app=ghost', to: '1Gi' },
      /No claim in namespace default matches the selector app=ghost/,
    ],
    ['names and labels', { names: ['a'], selector: 'a=b', to: '1Gi' }, /not both/],
    ['neither names nor labels', { to: '1Gi' }, /No claims are selected/],
    ['an empty selector', { selector: ' ', to: '1Gi' }, /would select every claim/],
  ])('PLUS-13 rejects %s with a message', async (_case, flags, message) => {
    await expect(grow(flags)).rejects.toThrow(message)
  })

  it.each<[Partial<GrowFlags>, RegExp]>([
    [{}, /Set either --to or --by/],
    [{ to: '1Gi', by: '1Gi' }, /not both/],
    [{ to: 'big' }, /--to "big": expected a size/],
    [{ to: '0' }, /expected a size above 0/],
    [{ by: '-1Gi' }, /grow never lowers a request/],
    [{ to: '1Gi', parallel: '0' }, /--parallel "0": expected a whole number from 1/],
    [{ to: '1Gi', maxFailures: '-1' }, /--max-failures/],
    [{ to: '1Gi', timeout: 'soon' }, /--timeout "soon": expected a duration/],
    [{ to: '1Gi', selector: '!!' }, /--selector "!!"/],
  ])('PLUS-13 rejects the flags %j', async (flags, message) => {
    expect(() => grow({ names: ['a'], ...flags })).toThrow(message)
  })
})

describe('stowage grow --by', () => {
  it('PLUS-13 grows once per run', async () => {
    for (const name of ['a', 'b']) await createClaim(name)
    expect((await grow({ selector: 'app=db', by: '5Gi' })).code).toBe(0)
    expect([await requestOf('a'), await requestOf('b')]).toEqual(['15Gi', '15Gi'])
    expect((await grow({ selector: 'app=db', by: '5Gi' })).code).toBe(0)
    expect([await requestOf('a'), await requestOf('b')]).toEqual(['20Gi', '20Gi'])
  })

  it('PLUS-13 grows every claim exactly once after an interruption at any write', async () => {
    const names = ['a', 'b', 'c']
    for (let crashPoint = 1; ; crashPoint++) {
      for (const name of names) await createClaim(`${name}-${crashPoint}`, { labels: { app: `db-${crashPoint}` } })
      const stop = new AbortController()
      let writes = 0
      // The command crashes after the write with the number crashPoint.
      const commandClient: Client = {
        ...client,
        patch: async (kind, ref, patch, options) => {
          if (options?.dryRun) return client.patch(kind, ref, patch, options)
          if (++writes > crashPoint) return new Promise(() => {})
          const updatedClaim = await client.patch(kind, ref, patch, options)
          if (writes < crashPoint) return updatedClaim
          stop.abort()
          return new Promise(() => {})
        },
      }
      const selector = `app=db-${crashPoint}`
      let output = ''
      const crash = new Promise<void>((resolve) => stop.signal.addEventListener('abort', () => resolve()))
      const firstRun = grow({ selector, by: '5Gi' }, { commandClient, write: (text) => (output += text) })
      if ((await Promise.race([firstRun, crash]))?.code === 0) {
        expect(writes, 'three sizes, three records').toBe(6)
        break
      }
      await waitFor(async () => (await getClaim(`a-${crashPoint}`)).status.capacity.storage === '15Gi')
      if (crashPoint > 3)
        expect(output, 'printed before the records are closed').toContain('All 3 claims have the requested size')
      if (crashPoint < 6) {
        const secondRun = await grow({ selector, by: '5Gi' })
        expect(secondRun.out, `after write ${crashPoint}`).toContain('Resuming an interrupted run.')
        expect(secondRun.code).toBe(0)
      }
      for (const name of names) {
        expect(await requestOf(`${name}-${crashPoint}`), `after write ${crashPoint}`).toBe('15Gi')
        expect(await readRecord(`${name}-${crashPoint}`)).toMatchObject({ closed: true })
      }
      expect((await grow({ selector, by: '5Gi' })).code, 'a new run grows again').toBe(0)
      for (const name of names) expect(await requestOf(`${name}-${crashPoint}`)).toBe('20Gi')
    }
  })

  it('PLUS-13 requests the same size again after the user lowered a failed request', async () => {
    for (const name of ['a', 'b']) await createClaim(name)
    controller = (name, storage) =>
      name === 'b'
        ? { allocatedResources: { storage }, allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' } }
        : { capacity: { storage } }
    expect((await grow({ selector: 'app=db', by: '5Gi' })).code).toBe(1)
    await fixture.patch(`${CLAIMS}/b`, { spec: { resources: { requests: { storage: '10Gi' } } } }, 'merge')
    await setStatus('b', { allocatedResources: null, allocatedResourceStatuses: null })
    controller = (_name, storage) => ({ capacity: { storage } })
    controllerRun = Promise.all([controllerRun, runController()]).then(() => {})
    expect((await grow({ selector: 'app=db', by: '5Gi' })).code).toBe(0)
    expect([await requestOf('a'), await requestOf('b')]).toEqual(['15Gi', '15Gi'])
  })

  it('PLUS-13 rejects another amount after an interrupted run until --to sets the size', async () => {
    await createClaim('a')
    controller = () => undefined
    const stop = new AbortController()
    const firstRun = grow({ names: ['a'], by: '5Gi' }, { signal: stop.signal })
    await waitFor(async () => (await requestOf('a')) === '15Gi')
    stop.abort()
    expect((await firstRun).code).toBe(130)
    const secondRun = await grow({ names: ['a'], by: '7Gi' })
    expect(secondRun.out).toContain(
      'growing the claim by 5Gi, to 15Gi, was interrupted; run that command again first, or set the size with --to',
    )
    await setStatus('a', { capacity: { storage: '15Gi' } })
    controller = (_name, storage) => ({ capacity: { storage } })
    expect((await grow({ names: ['a'], to: '18Gi' })).code).toBe(0)
    expect(await readRecord('a')).toBeNull()
  })

  it('PLUS-13 accepts another amount after --to confirms the size of an interrupted run', async () => {
    await createClaim('a')
    controller = () => undefined
    const stop = new AbortController()
    const firstRun = grow({ names: ['a'], by: '5Gi' }, { signal: stop.signal })
    await waitFor(async () => (await requestOf('a')) === '15Gi')
    stop.abort()
    await firstRun
    await setStatus('a', { capacity: { storage: '15Gi' } })
    expect((await grow({ names: ['a'], to: '15Gi' })).code).toBe(0)
    expect((await grow({ names: ['a'], by: '7Gi', dryRun: true })).code).toBe(0)
  })
})
