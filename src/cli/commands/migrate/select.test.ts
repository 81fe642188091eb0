import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Claim } from '../../bulk/index.ts'
import { aClaim, RECORD } from './claim.fixture.ts'
import { type Operation, planMove } from './plan.ts'
import { type MigrateRecord, recordOf } from './record.ts'
import { selectMove, selectUndo } from './select.ts'

describe('selectMove and selectUndo', () => {
  const namesOf = (selection: { claims: readonly Claim[] } | undefined) =>
    selection?.claims.map(({ metadata }) => metadata.name)

  it('PLUS-4 select all claims of the class in natural order', () => {
    const claims = ['db-10', 'db-2'].map((name) => aClaim({ name, attributesClassName: 'silver' }))
    const selection = selectMove([...claims, aClaim({ name: 'x', attributesClassName: 'gold' })], {
      ...RECORD,
      newId: 'm-9',
    })
    expect([namesOf(selection), selection.operation.id, selection.isResumed]).toEqual([['db-2', 'db-10'], 'm-9', false])
  })

  it('PLUS-4 resume an interrupted operation with its id, but not a completed one', () => {
    const remainingClaim = aClaim({ name: 'b', attributesClassName: 'silver' })
    const startedClaims = (record: MigrateRecord) => [
      aClaim({ name: 'a', attributesClassName: 'gold', record }),
      remainingClaim,
    ]
    const openSelection = selectMove(startedClaims(RECORD), { ...RECORD, newId: 'm-9' })
    expect([namesOf(openSelection), openSelection.operation.id, openSelection.isResumed]).toEqual([
      ['a', 'b'],
      'm-1',
      true,
    ])
    const closedSelection = selectMove(startedClaims({ ...RECORD, closed: true }), { ...RECORD, newId: 'm-9' })
    expect([namesOf(closedSelection), closedSelection.operation.id, closedSelection.isResumed]).toEqual([
      ['b'],
      'm-9',
      false,
    ])
  })

  it('PLUS-4 treat an absent class and an empty class the same', () => {
    const claims = [
      aClaim({ name: 'a' }),
      aClaim({ name: 'b', attributesClassName: '' }),
      aClaim({ name: 'c', attributesClassName: 'x' }),
    ]
    expect(namesOf(selectMove(claims, { from: '', to: 'gold', newId: 'm-9' }))).toEqual(['a', 'b'])
  })

  it('PLUS-4 select claims with the record for undo, and list the operations if several match', () => {
    const claims = [
      aClaim({ name: 'a', attributesClassName: 'gold', record: { ...RECORD, closed: true } }),
      aClaim({ name: 'b', attributesClassName: 'gold' }),
      aClaim({ name: 'c', attributesClassName: 'gold', record: { ...RECORD, id: 'm-2', from: 'bronze' } }),
    ]
    expect(namesOf(selectUndo(claims, { id: 'm-1' }))).toEqual(['a'])
    expect(namesOf(selectUndo(claims, { from: 'bronze' }))).toEqual(['c'])
    expect(selectUndo(claims, { id: 'm-3' })).toBeUndefined()
    expect(() => selectUndo(claims, {})).toThrow(
      /choose one:\n {2}--operation m-1 {3}1 claim from silver to gold\n {2}--operation m-2 {3}1 claim from bronze to gold/,
    )
  })

  it('PLUS-4 return every claim to its class after any interruptions of migrate and undo', () => {
    const CLASSES = ['silver', 'gold', 'bronze']
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...CLASSES), { minLength: 1, maxLength: 6 }),
        fc.array(fc.nat(6), { maxLength: 5 }),
        (startClasses, interruptions) => {
          let claims = startClasses.map((attributesClassName, index) =>
            aClaim({ name: `c-${index}`, attributesClassName }),
          )
          /** Moves the first `count` claims and is then interrupted. */
          const run = (operation: Operation, selectedClaims: readonly Claim[], count: number) => {
            for (const claim of selectedClaims.slice(0, count)) {
              const plan = planMove(claim, operation)
              if (plan.do !== 'move') continue
              const { name } = claim.metadata
              const movedClaim = aClaim({ name, attributesClassName: plan.to, record: plan.record })
              claims = claims.map((existingClaim) =>
                existingClaim.metadata.name === name ? movedClaim : existingClaim,
              )
            }
          }
          for (const [round, count] of [...interruptions, 6].entries()) {
            const selection = selectMove(claims, { from: 'silver', to: 'gold', newId: `m-${round}` })
            run(selection.operation, selection.claims, count)
          }
          const ids = new Set(claims.flatMap((claim) => recordOf(claim)?.id ?? []))
          expect(ids.size).toBe(startClasses.includes('silver') ? 1 : 0)
          expect(claims.map(({ spec }) => spec?.volumeAttributesClassName)).toEqual(
            startClasses.map((attributesClassName) =>
              attributesClassName === 'silver' ? 'gold' : attributesClassName,
            ),
          )
          for (const count of [...interruptions, 6]) {
            const selection = selectUndo(claims, {})
            if (selection) run(selection.operation, selection.claims, count)
          }
          expect(claims.map(({ spec }) => spec?.volumeAttributesClassName)).toEqual(startClasses)
        },
      ),
    )
  })
})
