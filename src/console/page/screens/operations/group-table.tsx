// Operations by group. A group can be selected, and the table below then shows only its operations.
import { Age } from '../../components/age.tsx'
import type { Grouping, OperationGroup } from '../../logic/operations.ts'

interface GroupTableProps {
  readonly grouping: Grouping
  readonly groups: readonly OperationGroup[]
  readonly selected: string | undefined
  onSelect(group: string): void
}

export const GroupTable = ({ grouping, groups, selected, onSelect }: GroupTableProps) => (
  <div class="group-table panel-scroll">
    <table>
      <thead>
        <tr>
          <th scope="col">{grouping[0]!.toUpperCase() + grouping.slice(1)}</th>
          <th scope="col" class="number">
            Operations
          </th>
          <th scope="col" class="number">
            Running
          </th>
          <th scope="col" class="number">
            Retrying
          </th>
          <th scope="col" class="number">
            Waiting
          </th>
          <th scope="col" class="number">
            Most attempts
          </th>
          <th scope="col" class="number">
            Oldest
          </th>
        </tr>
      </thead>
      <tbody>
        {groups.map((group) => (
          <tr key={group.name}>
            <td>
              <button
                type="button"
                class="button-link"
                aria-pressed={selected === group.name}
                onClick={() => onSelect(group.name)}
              >
                {group.name}
              </button>
            </td>
            <td class="number">{group.count}</td>
            <td class="number">{group.running}</td>
            <td class={`number${group.retrying > 0 ? ' tone-bad' : ''}`}>{group.retrying}</td>
            <td class="number">{group.waiting}</td>
            <td class="number">{group.attemptsMax}</td>
            <td class="number">
              <Age timeMs={group.oldestMs} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)
