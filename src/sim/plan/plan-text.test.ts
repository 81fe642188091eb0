import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { generatePlan } from '../workload/generate-plan.ts'
import type { Action } from './plan.ts'
import { describeAction } from './plan-text.ts'
import { simplerValues } from './simpler-plans.ts'

describe('the text of an action', () => {
  it('names the user, the action and the object', () => {
    const spec = {
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'net-now',
      volumeAttributesClassName: 'silver',
      resources: { requests: { storage: '4Gi', iops: '500' } },
    }
    const ref = { namespace: 'team-a', name: 'c1' }
    const pod = {
      metadata: { namespace: 'team-b', name: 'p0' },
      spec: {
        volumes: [
          { name: 'c1', persistentVolumeClaim: { claimName: 'c1' } },
          { name: 'own', ephemeral: { volumeClaimTemplate: { spec } } },
        ],
      },
    }
    const examples: [Action, string][] = [
      [
        { do: 'create', kind: 'claim', object: { metadata: ref, spec } },
        'alice creates claim team-a/c1 (4Gi, net-now, silver, iops 500)',
      ],
      [
        { do: 'create', kind: 'pod', object: pod },
        'bob creates pod team-b/p0 (c1, ephemeral 4Gi net-now silver iops 500)',
      ],
      [
        {
          do: 'edit',
          kind: 'claim',
          ref,
          purpose: 'grow',
          patch: { spec: { resources: { requests: { storage: '6Gi' } } } },
        },
        'alice edits claim team-a/c1 (grow): spec.resources.requests.storage=6Gi',
      ],
      [
        { do: 'edit', kind: 'volume', ref, purpose: 'release', patch: { spec: { claimRef: null } } },
        'admin edits the volume of claim team-a/c1 (release): spec.claimRef=null',
      ],
      [
        { do: 'delete', kind: 'pod', ref: { namespace: 'team-a', name: 'p1' }, graceSeconds: 0 },
        'alice deletes pod team-a/p1 (at once)',
      ],
      [{ do: 'delete', kind: 'node', ref: { name: 'n1' } }, 'admin deletes node n1'],
      [{ do: 'revert', ref }, 'alice resets the spec of claim team-a/c1 to the values in its status'],
      [{ do: 'set gate', gate: 'CSIStorageCapacity', isOn: false }, 'admin turns CSIStorageCapacity off'],
    ]
    for (const [action, text] of examples) expect(describeAction(action)).toBe(text)
  })

  it('describes a fault, with its duration if it has one', () => {
    const examples: [Action, string][] = [
      [{ do: 'freeze', process: 'control-1', ms: 40_000 }, 'control-1 freezes for 40 s'],
      [{ do: 'crash', process: 'server', downMs: 800 }, 'server crashes for 800 ms'],
      [{ do: 'jump clock', process: 'agent-n1', byMs: -300_000 }, 'the clock of agent-n1 jumps back by 5 min'],
      [{ do: 'bad network', ms: 5_000, lose: 0.25 }, 'the network loses 25 % for 5 s'],
      [
        { do: 'driver fails', driver: 'net.sim', method: 'CreateVolume', code: 'ABORTED', times: 2 },
        'net.sim answers CreateVolume with ABORTED, 2 times',
      ],
    ]
    for (const [action, text] of examples) expect(describeAction(action)).toBe(text)
  })

  it('is readable for the actions of random plans, even after a step of shrinking', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1_000_000 }), fc.nat(), (seed, nth) => {
        const plan = generatePlan(seed)
        for (const { action } of plan.steps)
          expect(isReadable(describeAction(action)), describeAction(action)).toBe(true)
        const step = plan.steps[nth % plan.steps.length]!
        for (const { steps } of simplerValues({ ...plan, steps: [step] }))
          expect(isReadable(describeAction(steps[0]!.action)), describeAction(steps[0]!.action)).toBe(true)
      }),
      { numRuns: 60 },
    )
  })

  it('is not empty for objects of any shape', () => {
    const object = fc.dictionary(fc.constantFrom('metadata', 'spec', 'x'), fc.jsonValue())
    const kinds = ['claim', 'pod', 'volume', 'quota', 'limit range', 'storage class', 'attributes class'] as const
    fc.assert(
      fc.property(fc.constantFrom(...kinds), object, (kind, anyObject) => {
        expect(describeAction({ do: 'create', kind, object: anyObject as never })).not.toBe('')
      }),
    )
  })
})

const isReadable = (text: string): boolean =>
  text.length > 8 && text.length < 700 && !/undefined|\[object|NaN|\n/.test(text)
