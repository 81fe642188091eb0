import { describe, expect, it } from 'vitest'
import { qosClassOf } from './pod-qos.ts'

const specOf = (...resources: object[]) => ({
  containers: resources.map((containerResources, i) => ({ name: `c${i}`, resources: containerResources })),
})
const ONE_CPU_AND_GIB = { cpu: '1', memory: '1Gi' }

describe('qosClassOf', () => {
  it.each([
    ['BestEffort', 'a pod without requests or limits', specOf({})],
    [
      'BestEffort',
      'a pod without requests for cpu or memory',
      specOf({ requests: { 'ephemeral-storage': '1Gi', cpu: '0' } }),
    ],
    [
      'Guaranteed',
      'containers with equal requests and limits',
      specOf(
        { requests: ONE_CPU_AND_GIB, limits: ONE_CPU_AND_GIB },
        { requests: ONE_CPU_AND_GIB, limits: ONE_CPU_AND_GIB },
      ),
    ],
    [
      'Guaranteed',
      'equal amounts in different notations',
      specOf({ requests: { cpu: '1000m', memory: '1024Mi' }, limits: ONE_CPU_AND_GIB }),
    ],
    [
      'Burstable',
      'a pod with one container without limits',
      specOf({ requests: ONE_CPU_AND_GIB, limits: ONE_CPU_AND_GIB }, {}),
    ],
    [
      'Burstable',
      'a request below the limit',
      specOf({ requests: { cpu: '500m', memory: '1Gi' }, limits: ONE_CPU_AND_GIB }),
    ],
    ['Burstable', 'requests and limits only for cpu', specOf({ requests: { cpu: '1' }, limits: { cpu: '1' } })],
    [
      'Guaranteed',
      'equal pod-level requests and limits',
      { ...specOf({}), resources: { requests: ONE_CPU_AND_GIB, limits: ONE_CPU_AND_GIB } },
    ],
  ])('returns %s for %s', (qosClass, _case, podSpec) => {
    expect(qosClassOf(podSpec)).toBe(qosClass)
  })
})
