// What users do with pods: use up to three claims, with volumes of their own or without, on any node or a certain one,
// and end them politely or at once.
import { type Draft, freshName, isForBlock, keyOf, likely, someClaimName, somePod } from './draft.ts'
import { claimSpec } from './make-claim-acts.ts'
import type { PeopleAct } from './plan.ts'

/** A label that administrators give to nodes and take away. */
export const ZONE = 'people.example/zone'

export function createPod(draft: Draft): PeopleAct {
  const { dice, pods } = draft
  const of = freshName(dice, pods, () => somePod(dice))
  if (!pods.has(keyOf(of))) pods.set(keyOf(of), of)
  const volumes = [...claimVolumes(draft, of.namespace ?? ''), ...ephemeralVolumes(draft)]
  const isDevice = (name: string) => isForBlock(name)
  const container = {
    name: 'main',
    image: 'scratch',
    volumeMounts: volumes.filter(({ name }) => !isDevice(name)).map(({ name }) => ({ name, mountPath: `/${name}` })),
    volumeDevices: volumes
      .filter(({ name }) => isDevice(name))
      .map(({ name }) => ({ name, devicePath: `/dev/${name}` })),
    ...containerResources(draft),
  }
  const spec = {
    containers: [container],
    ...(volumes.length > 0 ? { volumes } : {}),
    ...placement(draft),
    ...(dice.chance(0.5) ? { terminationGracePeriodSeconds: dice.pick([0, 1, 5, 30]) } : {}),
  }
  return { do: 'create', kind: 'pod', object: { metadata: { ...of }, spec } }
}

function claimVolumes({ dice, claims }: Draft, namespace: string) {
  const inNamespace = [...claims.values()].filter(({ of }) => of.namespace === namespace)
  const count = dice.weighted([
    [2, 0],
    [8, 1],
    [3, 2],
    [1, 3],
  ])
  const names = new Set(
    Array.from({ length: count }, () =>
      inNamespace.length > 0 && dice.chance(0.9) ? dice.pick(inNamespace).of.name : someClaimName(dice),
    ),
  )
  return [...names].map((claimName) => ({
    name: claimName,
    persistentVolumeClaim: { claimName, ...(dice.chance(0.05) ? { readOnly: true } : {}) },
  }))
}

function ephemeralVolumes(draft: Draft) {
  const { dice } = draft
  const count = dice.weighted([
    [8, 0],
    [3, 1],
    [1, 2],
  ])
  return Array.from({ length: count }, (_, nth) => ({
    name: `own-${nth}`,
    ephemeral: { volumeClaimTemplate: { spec: claimSpec(draft).spec } },
  }))
}

function containerResources({ dice }: Draft) {
  const what = dice.roll(20)
  if (what < 10) return {}
  if (what === 19) return { resources: { requests: { cpu: '1000' } } } // no node has that many
  const requests = { cpu: '100m', memory: '64Mi' }
  return { resources: { requests, ...(what < 14 ? { limits: { cpu: '200m', memory: '128Mi' } } : {}) } }
}

function placement({ dice, nodes }: Draft) {
  const what = dice.roll(40)
  if (what < 2) return { nodeName: dice.pick(nodes) }
  if (what < 4) return { nodeSelector: { [ZONE]: dice.pick(['a', 'b']) } }
  if (what === 4) return { nodeSelector: { 'people.example/nowhere': 'true' } }
  if (what === 5) return { schedulerName: 'nobody' }
  return {}
}

export function deletePod(draft: Draft): PeopleAct {
  const { dice, pods } = draft
  const of = likely(dice, pods, () => somePod(dice))
  pods.delete(keyOf(of))
  const how = dice.weighted<object>([
    [6, {}],
    [3, { graceSeconds: 0 }],
    [2, { graceSeconds: dice.between(1, 20) }],
    [1, { propagation: 'Foreground' }],
    [0.5, { propagation: 'Orphan' }],
  ])
  return { do: 'delete', kind: 'pod', of, ...how }
}

export function touchPod(draft: Draft): PeopleAct {
  const of = likely(draft.dice, draft.pods, () => somePod(draft.dice))
  const patch = { metadata: { labels: { touched: String(draft.dice.roll(100)) } } }
  return { do: 'edit', kind: 'pod', of, patch, why: 'label' }
}
