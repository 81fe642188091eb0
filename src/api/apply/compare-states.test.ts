import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anyConfig, machineShape } from './apply.fixture.ts'
import { compareStates } from './compare-states.ts'

const compareMachines = (oldMachine: object, newMachine: object) => compareStates(machineShape, oldMachine, newMachine)

describe('compareStates', () => {
  it('finds no difference between equal objects', () => {
    fc.assert(
      fc.property(anyConfig, (config) => {
        expect(compareMachines(config, structuredClone(config))).toEqual({ removed: {}, modified: {}, added: {} })
      }),
    )
  })

  it('reports fields that are added in one direction as removed in the other, and modified fields in both', () => {
    fc.assert(
      fc.property(anyConfig, anyConfig, (a, b) => {
        const forward = compareMachines(a, b)
        const backward = compareMachines(b, a)
        expect(forward.added).toEqual(backward.removed)
        expect(forward.modified).toEqual(backward.modified)
      }),
    )
  })

  it('descends into objects, maps, sets and keyed items, and compares all other values as a whole', () => {
    const oldMachine = {
      colour: 'red',
      labels: { a: '1', b: '2' },
      order: ['x', 'y'],
      tags: ['s', 't'],
      parts: [{ name: 'arm', weight: 1 }],
      joint: { from: 'p', to: 'q' },
      looseJoint: { from: 'p', to: 'q' },
    }
    const newMachine = {
      colour: 'blue',
      labels: { a: '1', c: '3' },
      order: ['y', 'x'],
      tags: ['t', 'u'],
      parts: [{ name: 'leg' }, { name: 'arm', weight: 2 }],
      joint: { from: 'p' },
      looseJoint: { from: 'p' },
    }
    expect(compareMachines(oldMachine, newMachine)).toEqual({
      modified: { 'f:colour': {}, 'f:order': {}, 'f:joint': {}, 'f:parts': { 'k:{"name":"arm"}': { 'f:weight': {} } } },
      removed: { 'f:labels': { 'f:b': {} }, 'f:tags': { 'v:"s"': {} }, 'f:looseJoint': { 'f:to': {} } },
      added: {
        'f:labels': { 'f:c': {} },
        'f:tags': { 'v:"u"': {} },
        'f:parts': { 'k:{"name":"leg"}': { '.': {}, 'f:name': {} } },
      },
    })
  })

  it('reports a new optional object as added, but not an object that is always present', () => {
    expect(compareMachines({}, { engine: { fuel: 'oil' }, metadata: { labels: { a: '1' } } }).added).toEqual({
      'f:metadata': { 'f:labels': { '.': {}, 'f:a': {} } },
      'f:engine': { '.': {}, 'f:fuel': {} },
    })
  })

  it('treats an absent key field as its default', () => {
    const tools = (grip: object) => ({ parts: [{ name: 'arm', tools: [{ id: 1, ...grip }] }] })
    expect(compareMachines(tools({}), tools({ grip: 'right' })).removed).toEqual({})
    expect(compareMachines(tools({}), tools({ grip: 'left' })).removed).toMatchObject({
      'f:parts': { 'k:{"name":"arm"}': { 'f:tools': { 'k:{"grip":"right","id":1}': {} } } },
    })
  })

  it('treats items with the same key as one value', () => {
    const machineWithTwoArms = (weight: number) => ({
      parts: [
        { name: 'arm', weight: 1 },
        { name: 'arm', weight },
      ],
    })
    expect(compareMachines(machineWithTwoArms(1), machineWithTwoArms(2)).modified).toEqual({
      'f:parts': { 'k:{"name":"arm"}': {} },
    })
    expect(compareMachines(machineWithTwoArms(1), machineWithTwoArms(1)).modified).toEqual({})
    const machineWithOneArm = { parts: [{ name: 'arm', weight: 1 }] }
    expect(compareMachines(machineWithTwoArms(1), machineWithOneArm)).toEqual({
      modified: {},
      removed: { 'f:parts': { 'k:{"name":"arm"}': {} } },
      added: { 'f:parts': { 'k:{"name":"arm"}': { '.': {}, 'f:name': {}, 'f:weight': {} } } },
    })
  })
})
