import { describe, expect, it } from 'vitest'
import { qosClassOf } from './pod-qos.ts'

const spec = (...resources: object[]) => ({
  containers: resources.map((one, i) => ({ name: `c${i}`, resources: one })),
})
const both = { cpu: '1', memory: '1Gi' }

describe('QoS class', () => {
  it.each([
    ['no requests or limits', spec({}), 'BestEffort'],
    ['no requests for cpu or memory', spec({ requests: { 'ephemeral-storage': '1Gi', cpu: '0' } }), 'BestEffort'],
    [
      'limits and equal requests everywhere',
      spec({ requests: both, limits: both }, { requests: both, limits: both }),
      'Guaranteed',
    ],
    [
      'equal amounts in other notations',
      spec({ requests: { cpu: '1000m', memory: '1024Mi' }, limits: both }),
      'Guaranteed',
    ],
    ['one container without limits', spec({ requests: both, limits: both }, {}), 'Burstable'],
    ['a lower request', spec({ requests: { cpu: '500m', memory: '1Gi' }, limits: both }), 'Burstable'],
    ['cpu alone', spec({ requests: { cpu: '1' }, limits: { cpu: '1' } }), 'Burstable'],
    ['for the pod as a whole', { ...spec({}), resources: { requests: both, limits: both } }, 'Guaranteed'],
  ])('%s', (_case, podSpec, qosClass) => {
    expect(qosClassOf(podSpec)).toBe(qosClass)
  })
})
