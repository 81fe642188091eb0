import { describe, expect, it } from 'vitest'
import { FEATURE_GATES } from '../../api/feature-gates.ts'
import { ATTRIBUTES_CLASSES, CLASSES, DRIVERS } from '../plan/catalog.ts'
import { type Action, FAULT_KINDS, type KindName, type Plan, type Step, type UserAction } from '../plan/plan.ts'
import { controlProcesses, nodesOf, processesOf } from '../plan/process-names.ts'
import { METHODS } from './faults.ts'
import { generatePlan } from './generate-plan.ts'
import { isInvalid } from './invalid-objects.ts'
import { WORKLOAD_NAMES } from './workloads.ts'

const SEEDS = 300
const plans = Array.from({ length: SEEDS }, (_, seed) => generatePlan(seed))
const focusedPlans = WORKLOAD_NAMES.flatMap((workload) =>
  Array.from({ length: 20 }, (_, seed) => generatePlan(seed, { workload })),
)
const stockPlans = Array.from({ length: 40 }, (_, seed) => generatePlan(seed, { answers: 'stock' }))
const actions = plans.flatMap(({ steps }) => steps.map(({ action }) => action))

const USER_ACTIONS: Readonly<Record<UserAction['do'], true>> = {
  create: true,
  'create together': true,
  edit: true,
  delete: true,
  revert: true,
  'set gate': true,
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
  capacity: true,
  'stateful set': true,
}
const isUserAction = (action: Action): action is UserAction => Object.hasOwn(USER_ACTIONS, action.do)
const actionsOfType = <D extends Action['do']>(type: D) =>
  actions.filter((action): action is Extract<Action, { readonly do: D }> => action.do === type)

describe('targeted faults', () => {
  it('SYS-14 add the same steps to a plan for the same seed, and leave the other steps unchanged', () => {
    for (const seed of [1, 2, 3]) {
      const [plainPlan, targetedPlan] = [
        generatePlan(seed, { targetedFaults: 0 }),
        generatePlan(seed, { targetedFaults: 12 }),
      ]
      expect(targetedPlan).toEqual(generatePlan(seed, { targetedFaults: 12 }))
      expect(targetedPlan.steps.length).toBeGreaterThan(plainPlan.steps.length + 20)
      const texts = new Set(targetedPlan.steps.map((step) => JSON.stringify(step)))
      expect(plainPlan.steps.every((step) => texts.has(JSON.stringify(step)))).toBe(true)
      const processes = processesOf(targetedPlan.setup)
      for (const { action } of targetedPlan.steps)
        if ('process' in action && action.process) expect(processes).toContain(action.process)
      expect(targetedPlan.steps.map(({ atMs }) => atMs)).toEqual(
        targetedPlan.steps.map(({ atMs }) => atMs).sort((a, b) => a - b),
      )
    }
  })

  it('appear in every plan; frequent kinds appear in more than half of the plans', () => {
    const texts = (plan: Plan) => JSON.stringify(plan.steps)
    for (const plan of plans) expect(texts(plan)).toContain('target-5')
    const share = (pattern: RegExp) => plans.filter((plan) => pattern.test(texts(plan))).length / SEEDS
    expect(share(/"delete","kind":"claim","ref":{"namespace":"team-a","name":"target-\d+"}/)).toBeGreaterThan(0.8)
    expect(share(/imported-contested-/)).toBeGreaterThan(0.5)
    expect(share(/"grow"}.*target-\d+.*"grow"}/)).toBeGreaterThan(0.5)
  })

  it('include failing drivers, process and network faults, and deletions', () => {
    const targetedPlans = Array.from({ length: 40 }, (_, seed) =>
      generatePlan(seed, { targetedFaults: 12, operations: 0, faults: 0 }),
    )
    const targetedActions = targetedPlans.flatMap(({ steps }) => steps.map(({ action }) => action))
    for (const method of ['CreateVolume', 'ControllerModifyVolume'])
      expect(targetedActions.some((action) => action.do === 'driver hangs' && action.method === method)).toBe(true)
    for (const method of ['NodeExpandVolume', 'DeleteVolume', 'ControllerUnpublishVolume'])
      expect(targetedActions.some((action) => action.do === 'driver fails' && action.method === method)).toBe(true)
    for (const type of ['freeze', 'jump clock', 'revert', 'import', 'bad network', 'cut history', 'refuse writes'])
      expect(targetedActions.some((action) => action.do === type)).toBe(true)
    for (const kind of ['node', 'storage class'])
      expect(targetedActions.some((action) => action.do === 'delete' && action.kind === kind)).toBe(true)
    expect(targetedActions.some((action) => action.do === 'create' && action.kind === 'attributes class')).toBe(true)
    expect(targetedActions.some((action) => action.do === 'bad network' && action.only === 'replies')).toBe(true)
  })
})

describe('a steady period', () => {
  it('leaves the server and the controllers undisturbed in the last third of about half of the plans', () => {
    const isSteady = ({ setup, steps, faultRates, minutes }: Plan) => {
      const steadyProcesses = ['server', ...controlProcesses(setup)]
      const disruptions = steps.filter(({ action }) => {
        if (action.do !== 'crash' && action.do !== 'freeze' && action.do !== 'bad network')
          return action.do === 'refuse writes'
        return action.process === undefined || steadyProcesses.includes(action.process)
      })
      const lastMs = Math.max(0, ...disruptions.map(({ atMs }) => atMs))
      return (
        lastMs < 0.66 * minutes * 60_000 &&
        !Object.keys(faultRates.crashes).some((name) => steadyProcesses.includes(name))
      )
    }
    const share = plans.filter(isSteady).length / SEEDS
    expect(share).toBeGreaterThan(0.35)
    expect(share).toBeLessThan(0.7)
  })
})

describe('a plan', () => {
  it('SYS-14 is the same for the same seed, and differs between seeds', () => {
    for (const seed of [0, 1, 77, 123_456_789]) expect(generatePlan(seed)).toEqual(generatePlan(seed))
    expect(new Set(plans.map(({ steps }) => JSON.stringify(steps))).size).toBe(SEEDS)
    expect(new Set(plans.map(({ setup }) => JSON.stringify(setup))).size).toBeGreaterThan(30)
  })

  it('survives a round trip through JSON', () => {
    for (const plan of plans.slice(0, 20)) expect(JSON.parse(JSON.stringify(plan))).toEqual(plan)
  })

  it('lasts 50 minutes, and has 220 to 420 operations and at least 24 faults, ordered by time', () => {
    for (const { seed, minutes, steps } of plans) {
      const operations = steps.filter(({ action }) => isUserAction(action)).length
      expect(operations, `operations of seed ${seed}`).toBeGreaterThanOrEqual(220)
      expect(operations, `operations of seed ${seed}`).toBeLessThan(420)
      expect(steps.length - operations, `faults of seed ${seed}`).toBeGreaterThanOrEqual(24)
      expect(minutes).toBe(50)
      const times = steps.map(({ atMs }) => atMs)
      expect(times, `times of seed ${seed}`).toEqual(times.toSorted((a, b) => a - b))
      expect(times.every((atMs) => Number.isInteger(atMs) && atMs >= 0 && atMs <= minutes * 60_000)).toBe(true)
    }
  })

  it('honors the minutes, operations and faults options', () => {
    const { minutes, steps } = generatePlan(5, { minutes: 10, operations: 30, faults: 4 })
    expect(minutes).toBe(10)
    expect(steps.at(-1)!.atMs).toBeLessThanOrEqual(600_000)
    const operations = steps.filter(({ action }) => isUserAction(action)).length
    expect(operations).toBeGreaterThanOrEqual(30)
    expect(operations).toBeLessThan(80)
    expect(generatePlan(5, { minutes: 1, operations: 0, faults: 0 }).steps.length).toBeLessThan(40)
  })

  it('has fewer steps towards its end', () => {
    const stepsNearEnd = ({ minutes, steps }: Plan) =>
      steps.filter(({ atMs, action }) => atMs > (7 / 8) * minutes * 60_000 && !isFinalRestore(action)).length
    const shareNearEnd = plans.reduce((sum, plan) => sum + stepsNearEnd(plan), 0) / actions.length
    expect(shareNearEnd).toBeGreaterThan(0.02)
    expect(shareNearEnd).toBeLessThan(0.1) // an even distribution would give 1/8
  })

  it('refers only to processes, nodes and driver methods of its setup', () => {
    for (const { seed, setup, steps, faultRates } of plans) {
      const processes = processesOf(setup)
      const namedProcesses = steps.flatMap(({ action }) =>
        'process' in action && action.process !== undefined ? [action.process] : [],
      )
      for (const name of [...namedProcesses, ...Object.keys(faultRates.crashes)])
        expect(processes, `seed ${seed}`).toContain(name)
      for (const { action } of steps) {
        if (action.do === 'cut power') expect(nodesOf(setup)).toContain(action.node)
        if (action.do === 'driver fails' || action.do === 'driver hangs')
          expect(METHODS[action.driver]).toContain(action.method)
      }
    }
  })

  it('requests no iops or throughput if commits are not atomic', () => {
    for (const { setup, steps } of plans) {
      if (setup.commits === 'atomic') continue
      const claims = steps.flatMap(({ action }) =>
        'kind' in action && action.kind === 'claim' ? [JSON.stringify(action)] : [],
      )
      for (const text of claims) expect(text).not.toMatch(/"(iops|throughput)"/)
    }
  })
})

describe('a plan with stock answers', () => {
  const isStockFault = ({ action }: Step) => action.do === 'deny' || action.do === 'stop serving'

  it('commits one by one, requests no iops, and contains at least two stock faults', () => {
    for (const { setup, steps } of stockPlans) {
      expect(setup).toMatchObject({ answers: 'stock', commits: 'one by one' })
      expect(steps.filter(isStockFault).length).toBeGreaterThanOrEqual(2)
      expect(JSON.stringify(steps.filter(({ action }) => isUserAction(action)))).not.toMatch(/"requests":[^}]*"iops"/)
    }
  })

  it('differs only in its stock faults from a plan of the same seed that commits one by one', () => {
    for (const plan of [...plans, ...focusedPlans]) {
      expect(plan.setup).not.toHaveProperty('answers')
      expect(plan.steps.filter(isStockFault)).toEqual([])
    }
    for (const plan of plans.filter(({ setup }) => setup.commits === 'one by one').slice(0, 10)) {
      const { setup, steps, ...remaining } = generatePlan(plan.seed, { answers: 'stock' })
      const { answers: _, ...withoutAnswers } = setup
      const otherSteps = steps.filter((step) => !isStockFault(step))
      expect({ ...remaining, setup: withoutAnswers, steps: otherSteps }).toEqual(plan)
    }
  })
})

describe('all plans together', () => {
  it('contain every action, delete every kind, and create every kind except nodes', () => {
    const allActions = [...plans, ...focusedPlans, ...stockPlans].flatMap(({ steps }) =>
      steps.map(({ action }) => action),
    )
    const types = new Set(allActions.map((action) => action.do))
    expect([...types].sort()).toEqual([...Object.keys(USER_ACTIONS), ...FAULT_KINDS].sort())
    for (const type of ['create', 'delete'] as const) {
      const kinds = new Set<KindName>(
        allActions.flatMap((action) => (action.do === type ? [(action as { readonly kind: KindName }).kind] : [])),
      )
      // Nodes are created by their agents.
      const expectedKinds = Object.keys(KINDS).filter((kind) => !(type === 'create' && kind === 'node'))
      expect([...kinds].sort()).toEqual(expectedKinds.sort())
    }
    expect(new Set(actionsOfType('delete').map(({ propagation }) => propagation)).size).toBe(3)
    expect(actionsOfType('delete').some(({ kind, graceSeconds }) => kind === 'pod' && graceSeconds === 0)).toBe(true)
  })

  it('contain every purpose of an edit', () => {
    const purposes = new Set(actionsOfType('edit').map(({ kind, purpose }) => `${kind}: ${purpose}`))
    expect([...purposes].sort()).toEqual([
      'claim: amounts',
      'claim: annotate',
      'claim: grow',
      'claim: hold',
      'claim: invalid',
      'claim: label',
      'claim: lower',
      'claim: modify',
      'claim: modify and grow',
      'claim: release hold',
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
      'volume: label',
      'volume: policy',
      'volume: release',
      'volume: reserve',
    ])
  })

  it('request every class, and import volumes into every driver', () => {
    const claims = actionsOfType('create').flatMap(({ kind, object }) =>
      kind === 'claim' ? [JSON.stringify(object)] : [],
    )
    const pods = actionsOfType('create').flatMap(({ kind, object }) => (kind === 'pod' ? [JSON.stringify(object)] : []))
    const expectedTexts = [
      ...Object.keys(CLASSES).map((name) => `"storageClassName":"${name}"`),
      ...Object.keys(ATTRIBUTES_CLASSES).map((name) => `"volumeAttributesClassName":"${name}"`),
      '"storageClassName":"nowhere"',
      '"storageClassName":"static"',
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
    for (const text of expectedTexts)
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
    expect(new Set(actionsOfType('import').map(({ driver }) => driver)).size).toBe(DRIVERS.length)
  })

  it('create quotas for many resources and scopes', () => {
    const quotas = actions
      .filter((action) => 'kind' in action && action.kind === 'quota')
      .map((action) => JSON.stringify(action))
    const expectedKeys = [
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
    for (const text of [...expectedKeys, ...scopes])
      expect(
        quotas.some((quota) => quota.includes(text)),
        text,
      ).toBe(true)
  })

  it('disrupt every process of every setup, and use 15 error codes and every driver', () => {
    const disruptedProcesses = new Set(
      actions.flatMap((action) => ('process' in action && action.process !== undefined ? [action.process] : [])),
    )
    const allProcesses = new Set(plans.flatMap(({ setup }) => processesOf(setup)))
    expect([...disruptedProcesses].sort()).toEqual([...allProcesses].sort())
    expect(new Set(actionsOfType('driver fails').map(({ code }) => code)).size).toBe(15) // all codes except OK and UNIMPLEMENTED, which is a fixed property of a driver
    for (const type of ['driver fails', 'driver hangs', 'lose replies', 'fill pool'] as const)
      expect(new Set(actionsOfType(type).map(({ driver }) => driver)).size).toBe(DRIVERS.length)
    expect(new Set(actionsOfType('cut power').map(({ isOutOfService }) => isOutOfService)).size).toBe(2)
  })

  it('rarely change feature gates, lose the state of a driver or delete namespaces', () => {
    const shareOfPlansWith = (test: (action: Action) => boolean) =>
      plans.filter(({ steps }) => steps.some(({ action }) => test(action))).length / SEEDS
    expect(shareOfPlansWith(({ do: type }) => type === 'set gate')).toBeLessThan(0.06)
    expect(shareOfPlansWith(({ do: type }) => type === 'lose state')).toBeLessThan(0.05)
    const namespaceShare = shareOfPlansWith((action) => action.do === 'delete' && action.kind === 'namespace')
    expect(namespaceShare).toBeGreaterThan(0.04)
    expect(namespaceShare).toBeLessThan(0.25)
  })

  it('turn off every feature gate in some plan, and turn it on again later', () => {
    // Gate changes are rare: more seeds are needed to see all of them.
    const gates = new Set<string>()
    for (let seed = SEEDS; gates.size < FEATURE_GATES.length && seed < 5_000; seed++) {
      const gateChanges = generatePlan(seed).steps.flatMap(({ action }) => (action.do === 'set gate' ? [action] : []))
      if (gateChanges.length === 0) continue
      gates.add(gateChanges[0]!.gate)
      expect(gateChanges.map(({ isOn }) => isOn)).toEqual([false, true])
    }
    expect([...gates].sort()).toEqual([...FEATURE_GATES].sort())
  })

  it('include plans without fault rates, and plans with rates for all drivers and most processes', () => {
    const planCountWithoutRates = plans.filter(({ faultRates }) => JSON.stringify(faultRates).length < 70).length
    const planCountWithMostRates = plans.filter(({ faultRates, setup }) => {
      return (
        Object.keys(faultRates.drivers).length === 3 &&
        Object.keys(faultRates.crashes).length > processesOf(setup).length / 2
      )
    }).length
    expect(planCountWithoutRates).toBeGreaterThan(SEEDS / 12)
    expect(planCountWithMostRates).toBeGreaterThan(SEEDS / 20)
    for (const { faultRates } of plans)
      for (const rate of Object.values(faultRates.crashes)) {
        expect(rate).toBeGreaterThanOrEqual(1e-4)
        expect(rate).toBeLessThanOrEqual(1e-3)
      }
  })

  it('contain invalid objects in claims only', () => {
    const writes = actions.filter((action) => action.do === 'create' || action.do === 'edit')
    const invalidWrites = writes.filter((action) => isInvalid('object' in action ? action.object : action.patch))
    expect(invalidWrites.length).toBeGreaterThan(SEEDS)
    expect(invalidWrites.every((action) => action.kind === 'claim')).toBe(true)
    expect(invalidWrites.length).toBeLessThan(writes.length / 10)
  })
})

/** Whether an action restores a class, node or namespace, as restoreObjects does at the end of a plan. */
const isFinalRestore = (action: Action): boolean =>
  (action.do === 'edit' && action.purpose === 'uncordon') ||
  (action.do === 'create' && ['storage class', 'attributes class', 'namespace'].includes(action.kind))
