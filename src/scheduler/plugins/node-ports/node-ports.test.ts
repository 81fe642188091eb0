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
    ['the same port on all addresses', aPodWithHostPort(80), [PORT_CONFLICT.message]],
    ['the same port and address', aPodWithHostPort(80, { hostIP: '10.0.0.1' }), [PORT_CONFLICT.message]],
    ['the same port on another address', aPodWithHostPort(80, { hostIP: '10.0.0.2' }), []],
    ['the same port number of another protocol', aPodWithHostPort(80, { protocol: 'UDP' }), []],
    ['another port', aPodWithHostPort(81), []],
  ])('CAP-12 compares a used port with %s, and rejects the node only if they conflict', (_, pod, expected) => {
    expect(rejections(nodePorts, pod, nodeUsingPort80)).toEqual(expected)
  })
})
