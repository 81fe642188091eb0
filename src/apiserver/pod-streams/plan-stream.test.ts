import { describe, expect, it } from 'vitest'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { planStream } from './plan-stream.ts'

const aPod = (names: readonly string[], spec: object = {}): Pod =>
  ({
    metadata: { namespace: 'shop', name: 'web' },
    spec: { nodeName: 'node-1', containers: names.map((name) => ({ name })), ...spec },
  }) as Pod
const query = (text: string) => new URLSearchParams(text)

describe('planStream', () => {
  it('SYS-26 translates API parameters to agent parameters', () => {
    const plan = planStream(
      aPod(['a']),
      'exec',
      query('command=sh&command=-c&command=echo+1%2b1&stdin=true&stdout=1&tty=true'),
    )
    expect(plan).toEqual({
      nodeName: 'node-1',
      path: '/exec/shop/web/a?input=1&output=1&tty=1&command=sh&command=-c&command=echo+1%2B1',
    })
    expect(planStream(aPod(['a']), 'log', query('follow=true&tailLines=5&pretty=1'))?.path).toBe(
      '/containerLogs/shop/web/a?follow=true&tailLines=5',
    )
    expect(planStream(aPod(['a', 'b']), 'attach', query('container=b&stdout=true'))?.path).toBe(
      '/attach/shop/web/b?output=1',
    )
  })

  it('SYS-26 rejects an ambiguous or unknown container with the Kubernetes messages', () => {
    const pod = aPod(['a', 'b'], { initContainers: [{ name: 'i' }] })
    expect(() => planStream(pod, 'exec', query('command=ls&stdout=true'))).toThrow(
      'a container name must be specified for pod web, choose one of: [a b i]',
    )
    expect(() => planStream(pod, 'log', query('container=x'))).toThrow('container x is not valid for pod web')
    expect(planStream(pod, 'log', query('container=i'))?.path).toContain('/i?')
  })

  it('SYS-26 rejects exec in a pod without a node, and returns no plan for its log', () => {
    const pod = aPod(['a'], { nodeName: undefined })
    expect(() => planStream(pod, 'exec', query('command=ls&stdout=true'))).toThrow(
      'pod web does not have a host assigned',
    )
    expect(planStream(pod, 'log', query(''))).toBeUndefined()
  })

  it('SYS-26 rejects invalid options of logs', () => {
    const errorOf = (text: string) => {
      try {
        planStream(aPod(['a']), 'log', query(text))
        return undefined
      } catch (error) {
        const { code, message } = error as { code: number; message: string }
        return `${code} ${message}`
      }
    }
    expect(errorOf('tailLines=-1')).toMatch(
      /^422 PodLogOptions "" is invalid: tailLines: .*must be greater than or equal to 0/,
    )
    expect(errorOf('limitBytes=0')).toMatch(/^422 .*must be greater than 0/)
    expect(errorOf('tailLines=x')).toMatch(/^400 /)
    expect(errorOf('stream=Stdout')).toMatch(/^422 .*may not be specified/)
    expect(errorOf('sinceTime=soon')).toMatch(/^400 /)
  })
})
