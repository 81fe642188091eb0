import { describe, expect, it } from 'vitest'
import { FEATURE_GATES } from '../../api/feature-gates.ts'
import { METHODS } from './make-fault-acts.ts'
import { makePlan } from './make-plan.ts'
import { isNonsense } from './nonsense.ts'
import { type Act, FAULT_WORDS, type KindName, type PeopleAct, type Plan } from './plan.ts'
import { controlProcesses, nodesOf, processesOf } from './processes.ts'
import { ATTRIBUTES_CLASSES, CLASSES, DRIVERS } from './universe.ts'

const SEEDS = 300
const plans = Array.from({ length: SEEDS }, (_, seed) => makePlan(seed))
const acts = plans.flatMap(({ steps }) => steps.map(({ act }) => act))

const PEOPLE: Readonly<Record<PeopleAct['do'], true>> = {
  create: true,
  edit: true,
  delete: true,
  'go back': true,
  'switch gate': true,
  import: true,
}
const KINDS: Readonly<Record<KindName, true>> = {
  claim: true,
  pod: true,
  volume: true,
  'storage class': true,
  'attributes class': true,
  quota: true,
  'limit range': true,
  node: true,
  namespace: true,
  'config map': true,
}
const isOfPeople = (act: Act): act is PeopleAct => Object.hasOwn(PEOPLE, act.do)
const only = <D extends Act['do']>(word: D) =>
  acts.filter((act): act is Extract<Act, { readonly do: D }> => act.do === word)

describe('ambushes', () => {
  it('SYS-14 come on top of a plan, the same for the same seed, and leave the rest as it was', () => {
    for (const seed of [1, 2, 3]) {
      const [plain, aimed] = [makePlan(seed, { ambushes: 0 }), makePlan(seed, { ambushes: 12 })]
      expect(aimed).toEqual(makePlan(seed, { ambushes: 12 }))
      expect(aimed.steps.length).toBeGreaterThan(plain.steps.length + 20)
      const texts = new Set(aimed.steps.map((step) => JSON.stringify(step)))
      expect(plain.steps.every((step) => texts.has(JSON.stringify(step)))).toBe(true)
      const known = processesOf(aimed.setup)
      for (const { act } of aimed.steps) if ('process' in act && act.process) expect(known).toContain(act.process)
      expect(aimed.steps.map(({ atMs }) => atMs)).toEqual(aimed.steps.map(({ atMs }) => atMs).sort((a, b) => a - b))
    }
  })

  it('SYS-14 are in every plan, and most plans have most kinds', () => {
    const texts = (plan: Plan) => JSON.stringify(plan.steps)
    for (const plan of plans) expect(texts(plan)).toContain('trap-5')
    const share = (pattern: RegExp) => plans.filter((plan) => pattern.test(texts(plan))).length / SEEDS
    expect(share(/"delete","kind":"claim","of":{"namespace":"team-a","name":"trap-\d+"}/)).toBeGreaterThan(0.8)
    expect(share(/hand-prize-/)).toBeGreaterThan(0.5)
    expect(share(/"grow"}.*trap-\d+.*"grow"}/)).toBeGreaterThan(0.5)
  })

  it('SYS-14 of every kind occur', () => {
    const aimed = Array.from({ length: 40 }, (_, seed) => makePlan(seed, { ambushes: 12, operations: 0, faults: 0 }))
    const all = aimed.flatMap(({ steps }) => steps.map(({ act }) => act))
    for (const method of ['CreateVolume', 'ControllerModifyVolume'])
      expect(all.some((act) => act.do === 'driver hangs' && act.method === method)).toBe(true)
    for (const method of ['NodeExpandVolume', 'DeleteVolume', 'ControllerUnpublishVolume'])
      expect(all.some((act) => act.do === 'driver fails' && act.method === method)).toBe(true)
    for (const word of ['freeze', 'jump clock', 'go back', 'import', 'bad network', 'cut history', 'refuse writes'])
      expect(all.some((act) => act.do === word)).toBe(true)
    for (const kind of ['node', 'storage class'])
      expect(all.some((act) => act.do === 'delete' && act.kind === kind)).toBe(true)
    expect(all.some((act) => act.do === 'create' && act.kind === 'attributes class')).toBe(true)
    expect(all.some((act) => act.do === 'bad network' && act.only === 'replies')).toBe(true)
  })
})

describe('a steady day', () => {
  it('SYS-14 has a long part in which nothing takes the lead from a controller', () => {
    const isSteady = ({ setup, steps, weather, minutes }: Plan) => {
      const steady = ['server', ...controlProcesses(setup)]
      const shaking = steps.filter(({ act }) => {
        if (act.do !== 'crash' && act.do !== 'freeze' && act.do !== 'bad network') return act.do === 'refuse writes'
        return act.process === undefined || steady.includes(act.process)
      })
      const lastMs = Math.max(0, ...shaking.map(({ atMs }) => atMs))
      return lastMs < 0.66 * minutes * 60_000 && !Object.keys(weather.crashes).some((name) => steady.includes(name))
    }
    const share = plans.filter(isSteady).length / SEEDS
    expect(share).toBeGreaterThan(0.35)
    expect(share).toBeLessThan(0.7)
  })
})

describe('a plan', () => {
  it('SYS-14 is the same for the same seed, and another for another', () => {
    for (const seed of [0, 1, 77, 123_456_789]) expect(makePlan(seed)).toEqual(makePlan(seed))
    expect(new Set(plans.map(({ steps }) => JSON.stringify(steps))).size).toBe(SEEDS)
    expect(new Set(plans.map(({ setup }) => JSON.stringify(setup))).size).toBeGreaterThan(30)
  })

  it('SYS-14 is data: what is read back from JSON is the same plan', () => {
    for (const plan of plans.slice(0, 20)) expect(JSON.parse(JSON.stringify(plan))).toEqual(plan)
  })

  it('SYS-14 has 50 minutes with at least 200 operations and 20 faults, in the order in which they happen', () => {
    for (const { seed, minutes, steps } of plans) {
      const operations = steps.filter(({ act }) => isOfPeople(act)).length
      expect(operations, `operations of seed ${seed}`).toBeGreaterThanOrEqual(220)
      expect(operations, `operations of seed ${seed}`).toBeLessThan(420)
      expect(steps.length - operations, `faults of seed ${seed}`).toBeGreaterThanOrEqual(24)
      expect(minutes).toBe(50)
      const times = steps.map(({ atMs }) => atMs)
      expect(times, `times of seed ${seed}`).toEqual(times.toSorted((a, b) => a - b))
      expect(times.every((atMs) => Number.isInteger(atMs) && atMs >= 0 && atMs <= minutes * 60_000)).toBe(true)
    }
  })

  it('SYS-14 can be made longer or shorter', () => {
    const { minutes, steps } = makePlan(5, { minutes: 10, operations: 30, faults: 4 })
    expect(minutes).toBe(10)
    expect(steps.at(-1)!.atMs).toBeLessThanOrEqual(600_000)
    const operations = steps.filter(({ act }) => isOfPeople(act)).length
    expect(operations).toBeGreaterThanOrEqual(30)
    expect(operations).toBeLessThan(80)
    expect(makePlan(5, { minutes: 1, operations: 0, faults: 0 }).steps.length).toBeLessThan(40)
  })

  it('SYS-14 is calmer towards its end', () => {
    const share = ({ minutes, steps }: Plan) =>
      steps.filter(({ atMs, act }) => atMs > (7 / 8) * minutes * 60_000 && !isTidying(act)).length
    const late = plans.reduce((sum, plan) => sum + share(plan), 0) / acts.length
    expect(late).toBeGreaterThan(0.02)
    expect(late).toBeLessThan(0.1) // by time it would be an eighth
  })

  it('SYS-14 speaks only of processes, nodes and calls that its cluster has', () => {
    for (const { seed, setup, steps, weather } of plans) {
      const processes = processesOf(setup)
      const named = steps.flatMap(({ act }) => ('process' in act && act.process !== undefined ? [act.process] : []))
      for (const name of [...named, ...Object.keys(weather.crashes)]) expect(processes, `seed ${seed}`).toContain(name)
      for (const { act } of steps) {
        if (act.do === 'cut power') expect(nodesOf(setup)).toContain(act.node)
        if (act.do === 'driver fails' || act.do === 'driver hangs') expect(METHODS[act.driver]).toContain(act.method)
      }
    }
  })

  it('SYS-14 never asks for amounts where the server has no transactions', () => {
    for (const { setup, steps } of plans) {
      if (setup.commits === 'atomic') continue
      const claims = steps.flatMap(({ act }) => ('kind' in act && act.kind === 'claim' ? [JSON.stringify(act)] : []))
      for (const text of claims) expect(text).not.toMatch(/"(iops|throughput)"/)
    }
  })
})

describe('all plans together', () => {
  it('SYS-14 have every act, on every kind', () => {
    const done = new Set(acts.map((act) => act.do))
    expect([...done].sort()).toEqual([...Object.keys(PEOPLE), ...FAULT_WORDS].sort())
    for (const word of ['create', 'delete'] as const) {
      const kinds = new Set<KindName>(only(word).map(({ kind }) => kind))
      // Nodes are created by their agents.
      const expected = Object.keys(KINDS).filter((kind) => !(word === 'create' && kind === 'node'))
      expect([...kinds].sort()).toEqual(expected.sort())
    }
    expect(new Set(only('delete').map(({ propagation }) => propagation)).size).toBe(3)
    expect(only('delete').some(({ kind, graceSeconds }) => kind === 'pod' && graceSeconds === 0)).toBe(true)
  })

  it('SYS-14 have every reason to edit', () => {
    const whys = new Set(only('edit').map(({ kind, why }) => `${kind}: ${why}`))
    expect([...whys].sort()).toEqual([
      'claim: amounts',
      'claim: annotate',
      'claim: grow',
      'claim: hold',
      'claim: label',
      'claim: let go',
      'claim: lower',
      'claim: modify',
      'claim: modify and grow',
      'claim: nonsense',
      'config map: data',
      'limit range: bounds',
      'node: cordon',
      'node: label',
      'node: uncordon',
      'pod: label',
      'quota: bounds',
      'quota: lower',
      'quota: raise',
      'quota: selector',
      'storage class: default',
      'storage class: expansion',
      'volume: give back',
      'volume: label',
      'volume: policy',
      'volume: reserve',
    ])
  })

  it('SYS-14 ask for every class, every kind of volume, and every way of getting one', () => {
    const claims = only('create').flatMap(({ kind, object }) => (kind === 'claim' ? [JSON.stringify(object)] : []))
    const pods = only('create').flatMap(({ kind, object }) => (kind === 'pod' ? [JSON.stringify(object)] : []))
    const wanted = [
      ...Object.keys(CLASSES).map((name) => `"storageClassName":"${name}"`),
      ...Object.keys(ATTRIBUTES_CLASSES).map((name) => `"volumeAttributesClassName":"${name}"`),
      '"storageClassName":"nowhere"',
      '"storageClassName":"shelf"',
      '"storageClassName":""',
      '"volumeAttributesClassName":"missing"',
      '"ReadWriteMany"',
      '"ReadWriteOncePod"',
      '"volumeMode":"Block"',
      '"selector"',
      '"volumeName":"s',
      '"dataSource"',
      '"iops"',
      '"throughput"',
      '"limits"',
      '"20Gi"',
    ]
    for (const text of wanted)
      expect(
        claims.some((claim) => claim.includes(text)),
        text,
      ).toBe(true)
    expect(claims.some((claim) => !claim.includes('storageClassName'))).toBe(true)
    for (const text of ['"ephemeral"', '"nodeName"', '"nodeSelector"', '"cpu":"1000"', '"volumeDevices":[{'])
      expect(
        pods.some((pod) => pod.includes(text)),
        text,
      ).toBe(true)
    expect(new Set(only('import').map(({ driver }) => driver)).size).toBe(DRIVERS.length)
  })

  it('SYS-14 bound everything that a quota can bound', () => {
    const quotas = acts.filter((act) => 'kind' in act && act.kind === 'quota').map((act) => JSON.stringify(act))
    const wanted = [
      ...['requests.storage', 'persistentvolumeclaims', 'configmaps', 'secrets', 'resourcequotas', 'pods'],
      ...['limits.iops', 'limits.throughput', 'requests.iops', 'requests.throughput'],
      ...['cpu', 'memory', 'requests.cpu', 'requests.memory', 'limits.cpu', 'limits.memory'],
      ...[
        'requests.ephemeral-storage',
        'limits.ephemeral-storage',
        'requests.hugepages-2Mi',
        'requests.example.com/gpu',
      ],
      ...['count/persistentvolumeclaims', 'count/pods', 'count/configmaps', 'count/leases.coordination.k8s.io'],
      ...Object.keys(CLASSES).map((name) => `${name}.storageclass.storage.k8s.io/requests.storage`),
      ...Object.keys(CLASSES).map((name) => `${name}.storageclass.storage.k8s.io/persistentvolumeclaims`),
    ].map((key) => `"${key}":"`)
    const scopes = [
      ...['Terminating', 'NotTerminating', 'BestEffort', 'NotBestEffort', 'PriorityClass'],
      ...['CrossNamespacePodAffinity', 'VolumeAttributesClass', 'In', 'NotIn', 'Exists', 'DoesNotExist'],
    ].map((scope) => `"${scope}"`)
    for (const text of [...wanted, ...scopes])
      expect(
        quotas.some((quota) => quota.includes(text)),
        text,
      ).toBe(true)
  })

  it('SYS-14 break every process of every setup, with every code, for every driver', () => {
    const broken = new Set(acts.flatMap((act) => ('process' in act && act.process !== undefined ? [act.process] : [])))
    const all = new Set(plans.flatMap(({ setup }) => processesOf(setup)))
    expect([...broken].sort()).toEqual([...all].sort())
    expect(new Set(only('driver fails').map(({ code }) => code)).size).toBe(15) // OK is none, UNIMPLEMENTED stays
    for (const word of ['driver fails', 'driver hangs', 'lose replies', 'fill pool'] as const)
      expect(new Set(only(word).map(({ driver }) => driver)).size).toBe(DRIVERS.length)
    expect(new Set(only('cut power').map(({ isSaidLost }) => isSaidLost)).size).toBe(2)
  })

  it('SYS-14 rarely have what changes everything', () => {
    const having = (test: (act: Act) => boolean) =>
      plans.filter(({ steps }) => steps.some(({ act }) => test(act))).length / SEEDS
    expect(having(({ do: word }) => word === 'switch gate')).toBeLessThan(0.06)
    expect(having(({ do: word }) => word === 'lose state')).toBeLessThan(0.05)
    const namespaces = having((act) => act.do === 'delete' && act.kind === 'namespace')
    expect(namespaces).toBeGreaterThan(0.04)
    expect(namespaces).toBeLessThan(0.25)
  })

  it('SYS-14 switch every gate on again that they switch off', () => {
    // They are rare: more seeds are needed to see all of them.
    const gates = new Set<string>()
    for (let seed = SEEDS; gates.size < FEATURE_GATES.length && seed < 5_000; seed++) {
      const switched = makePlan(seed).steps.flatMap(({ act }) => (act.do === 'switch gate' ? [act] : []))
      if (switched.length === 0) continue
      gates.add(switched[0]!.gate)
      expect(switched.map(({ isOn }) => isOn)).toEqual([false, true])
    }
    expect([...gates].sort()).toEqual([...FEATURE_GATES].sort())
  })

  it('SYS-14 have days with a clear sky, and storms', () => {
    const clear = plans.filter(({ weather }) => JSON.stringify(weather).length < 70).length
    const storms = plans.filter(({ weather, setup }) => {
      return (
        Object.keys(weather.drivers).length === 3 && Object.keys(weather.crashes).length > processesOf(setup).length / 2
      )
    }).length
    expect(clear).toBeGreaterThan(SEEDS / 12)
    expect(storms).toBeGreaterThan(SEEDS / 20)
    for (const { weather } of plans)
      for (const rate of Object.values(weather.crashes)) {
        expect(rate).toBeGreaterThanOrEqual(1e-4)
        expect(rate).toBeLessThanOrEqual(1e-3)
      }
  })

  it('SYS-14 hold nonsense only where it is meant', () => {
    const written = acts.filter((act) => act.do === 'create' || act.do === 'edit')
    const nonsense = written.filter((act) => isNonsense('object' in act ? act.object : act.patch))
    expect(nonsense.length).toBeGreaterThan(SEEDS)
    expect(nonsense.every((act) => act.kind === 'claim')).toBe(true)
    expect(nonsense.length).toBeLessThan(written.length / 10)
  })
})

/** What is put right once at the end is no sign of people at work. */
const isTidying = (act: Act): boolean =>
  (act.do === 'edit' && act.why === 'uncordon') ||
  (act.do === 'create' && ['storage class', 'attributes class', 'namespace'].includes(act.kind))
