import { describe, expect, it } from 'vitest'
import { podInfoOf } from '../../cluster/pod-info.ts'
import { aNode, aPod, rejections } from '../plugins.fixture.ts'
import { nodePorts } from './node-ports.ts'

describe('NodePorts', () => {
  const aPodWithHostPort = (hostPort: number, port: object = {}, name = 'p') =>
    aPod({ containers: [{ name: 'c', ports: [{ containerPort: 80, hostPort, ...port }] }] }, name)
  const nodeUsingPort80 = aNode()
  nodeUsingPort80.addPod(podInfoOf(aPodWithHostPort(80, { hostIP: '10.0.0.1' }, 'existing')))

  it.each([
    ['on all addresses', aPodWithHostPort(80)],
    ['on the same address', aPodWithHostPort(80, { hostIP: '10.0.0.1' })],
  ])('CAP-12 rejects a node with its reason if the pod needs a used port %s', (_, pod) => {
    const reason = "node(s) didn't have free ports for the requested pod ports"
    expect(rejections(nodePorts, pod, nodeUsingPort80)).toEqual([reason])
  })

  it.each([
    ['a used port on another address', aPodWithHostPort(80, { hostIP: '10.0.0.2' })],
    ['the number of a used port with another protocol', aPodWithHostPort(80, { protocol: 'UDP' })],
    ['an unused port', aPodWithHostPort(81)],
  ])('accepts a node if the pod needs %s', (_, pod) => {
    expect(rejections(nodePorts, pod, nodeUsingPort80)).toEqual([])
  })
})
