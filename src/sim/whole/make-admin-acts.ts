// What administrators do with what is there once for everybody: classes, nodes, namespaces; and some small things that
// quotas count.
import { FEATURE_GATES } from '../../api/feature-gates.ts'
import { type Draft, someNamespace } from './draft.ts'
import { ZONE } from './make-pod-acts.ts'
import type { KindName, ObjectText, PeopleAct } from './plan.ts'
import { ATTRIBUTES_CLASSES, CLASSES, NAMESPACES } from './universe.ts'

const MINUTE_MS = 60_000
const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class'

export const classText = (name: string): ObjectText => ({ metadata: { name }, ...CLASSES[name] })
export const attributesClassText = (name: string): ObjectText => ({ metadata: { name }, ...ATTRIBUTES_CLASSES[name] })

/** One that is taken away comes back after a while, most of the time. */
function awayAndBack({ dice, later }: Draft, kind: KindName, object: ObjectText): PeopleAct {
  const { name } = object.metadata as { readonly name: string }
  if (dice.chance(0.8)) later(dice.between(10, 420) * 1_000, { do: 'create', kind, object })
  return { do: 'delete', kind, of: { name } }
}

export function changeClass(draft: Draft): PeopleAct {
  const { dice } = draft
  const name = dice.pick(Object.keys(CLASSES))
  const object = classText(name)
  switch (dice.roll(6)) {
    case 0:
    case 1:
      return awayAndBack(draft, 'storage class', object)
    case 2:
      return { do: 'create', kind: 'storage class', object }
    case 3: {
      const patch = { allowVolumeExpansion: dice.chance(0.5) }
      if (CLASSES[name]!.allowVolumeExpansion)
        draft.later(dice.between(1, 8) * MINUTE_MS, {
          do: 'edit',
          kind: 'storage class',
          of: { name },
          patch: { allowVolumeExpansion: true },
          why: 'expansion',
        })
      return { do: 'edit', kind: 'storage class', of: { name }, patch, why: 'expansion' }
    }
    default: {
      const patch = { metadata: { annotations: { [DEFAULT_CLASS]: dice.chance(0.7) ? 'true' : 'false' } } }
      return { do: 'edit', kind: 'storage class', of: { name }, patch, why: 'default' }
    }
  }
}

export function changeAttributesClass(draft: Draft): PeopleAct {
  const { dice } = draft
  const object = attributesClassText(dice.pick(Object.keys(ATTRIBUTES_CLASSES)))
  if (dice.chance(0.5)) return awayAndBack(draft, 'attributes class', object)
  return { do: 'create', kind: 'attributes class', object: dice.chance(0.5) ? attributesClassText('late') : object }
}

const editNode = (name: string, why: string, patch: ObjectText): PeopleAct => ({
  do: 'edit',
  kind: 'node',
  of: { name },
  patch,
  why,
})

export function changeNode(draft: Draft): PeopleAct {
  const { dice, nodes } = draft
  const name = dice.pick(nodes)
  const uncordon = editNode(name, 'uncordon', { spec: { unschedulable: false } })
  switch (dice.roll(6)) {
    case 0:
    case 1:
    case 2:
      if (dice.chance(0.9)) draft.later(dice.between(20, 600) * 1_000, uncordon)
      return editNode(name, 'cordon', { spec: { unschedulable: true } })
    case 3:
      return uncordon
    default:
      return editNode(name, 'label', { metadata: { labels: { [ZONE]: dice.pick(['a', 'b', null]) } } })
  }
}

export function changeConfigMap(draft: Draft): PeopleAct {
  const { dice } = draft
  const of = { namespace: someNamespace(dice), name: `m${dice.roll(5)}` }
  const data = { value: String(dice.roll(1_000)) }
  switch (dice.roll(4)) {
    case 0:
      return { do: 'delete', kind: 'config map', of }
    case 1:
      return { do: 'edit', kind: 'config map', of, patch: { data }, why: 'data' }
    default:
      return { do: 'create', kind: 'config map', object: { metadata: { ...of }, data } }
  }
}

/** Rare acts, which change everything: most plans have none of them. */
export function deleteNamespace(draft: Draft): PeopleAct {
  const { dice, claims, pods, quotas } = draft
  const name = NAMESPACES[1]
  for (const known of [claims, pods, quotas])
    for (const key of known.keys()) if (key.startsWith(`${name}/`)) known.delete(key)
  // It goes only when all that was in it is gone: whoever wants it back has to try again.
  const object = { metadata: { name } }
  for (const afterMs of [1, 3, 6, 9]) draft.later(afterMs * MINUTE_MS, { do: 'create', kind: 'namespace', object })
  return {
    do: 'delete',
    kind: 'namespace',
    of: { name },
    ...(dice.chance(0.3) ? { propagation: 'Foreground' } : {}),
  }
}

export function switchGate(draft: Draft): PeopleAct {
  const { dice } = draft
  const gate = dice.pick(FEATURE_GATES)
  draft.later(dice.between(2, 12) * MINUTE_MS, { do: 'switch gate', gate, isOn: true })
  return { do: 'switch gate', gate, isOn: false }
}

/** What is left undone when the day ends is put right: everything is there, and every node takes pods. */
export const tidyUp = ({ nodes }: Draft): PeopleAct[] => [
  ...nodes.map((name) => editNode(name, 'uncordon', { spec: { unschedulable: false } })),
  ...Object.keys(CLASSES).map((name): PeopleAct => ({ do: 'create', kind: 'storage class', object: classText(name) })),
  ...Object.keys(ATTRIBUTES_CLASSES).map(
    (name): PeopleAct => ({ do: 'create', kind: 'attributes class', object: attributesClassText(name) }),
  ),
  ...NAMESPACES.map((name): PeopleAct => ({ do: 'create', kind: 'namespace', object: { metadata: { name } } })),
]
