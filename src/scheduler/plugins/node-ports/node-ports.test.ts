import { describe, expect, it } from 'vitest'
import { podInfoOf } from '../../cluster/pod-info.ts'
import { aNode, aPod, rejections } from '../plugins.fixture.ts'
import { nodePorts, PORT_CONFLICT } from './node-ports.ts'

describe('NodePorts', () => {
  const aPodWithHostPort = (hostPort: number, port: object = {}, name = 'p') =>
    aPod({ containers: [{ name: 'c', ports: [{ containerPort: 80, hostPort, ...port }] }] }, name)
  const nodeUsingPort80 = aNode()
  nodeUsingPort80.addPod(podInfoOf(aPodWithHostPort(80, { hostIP: '10.0.0.1' }, 'existing')))

  it.each([
    [aPodWithHostPort(80), [PORT_CONFLICT.message]],
    [aPodWithHostPort(80, { hostIP: '10.0.0.1' }), [PORT_CONFLICT.message]],
    [aPodWithHostPort(80, { hostIP: '10.0.0.2' }), []],
    [aPodWithHostPort(80, { protocol: 'UDP' }), []],
    [aPodWithHostPort(81), []],
  ])('CAP-12 rejects a node only if protocol, port and address conflict (case %#)', (pod, expected) => {
    expect(rejections(nodePorts, pod, nodeUsingPort80)).toEqual(expected)
  })
})
