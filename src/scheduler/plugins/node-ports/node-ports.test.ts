import { describe, expect, it } from 'vitest'
import { podInfo } from '../../cluster/pod-info.ts'
import { aNode, aPod, rejections } from '../plugins.fixture.ts'
import { nodePorts, PORT_CONFLICT } from './node-ports.ts'

describe('NodePorts', () => {
  const using = (hostPort: number, more: object = {}, name = 'p') =>
    aPod({ containers: [{ name: 'c', ports: [{ containerPort: 80, hostPort, ...more }] }] }, name)
  const taken = aNode()
  taken.addPod(podInfo(using(80, { hostIP: '10.0.0.1' }, 'there')))

  it.each([
    [using(80), [PORT_CONFLICT.message]],
    [using(80, { hostIP: '10.0.0.1' }), [PORT_CONFLICT.message]],
    [using(80, { hostIP: '10.0.0.2' }), []],
    [using(80, { protocol: 'UDP' }), []],
    [using(81), []],
  ])('CAP-12 rejects a node only if protocol, number and address conflict (%#)', (pod, expected) => {
    expect(rejections(nodePorts, pod, taken)).toEqual(expected)
  })
})
