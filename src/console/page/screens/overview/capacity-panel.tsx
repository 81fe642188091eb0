// The storage of each class: promised to claims, used and free.
import { useMemo } from 'preact/hooks'
import { Meter } from '../../components/meter.tsx'
import { Panel } from '../../components/panel.tsx'
import { Unavailable } from '../../components/unavailable.tsx'
import { totalsByClass } from '../../logic/class-totals.ts'
import { formatBytes, formatCount, pluralize } from '../../logic/format.ts'
import { linkTo } from '../../logic/url.ts'
import { claimViews } from '../../state/claim-table.ts'
import { capacities } from '../../state/collections.ts'

export function CapacityPanel({ version }: { readonly version: number }) {
  const totals = useMemo(
    () => totalsByClass(claimViews.values(), capacities.rows.values()),
    [version, capacities.version.value],
  )
  return (
    <Panel title="Capacity by class" span={5} more={<a href={linkTo('capacity')}>Heat map</a>} isFlush>
      <table>
        <thead>
          <tr>
            <th scope="col">Class</th>
            <th scope="col" class="number">
              Claims
            </th>
            <th scope="col" class="number">
              Promised
            </th>
            <th scope="col" class="number">
              Used
            </th>
            <th scope="col" class="number">
              Free
            </th>
          </tr>
        </thead>
        <tbody>
          {totals.map(({ name, claims, promisedBytes, usedBytes, measuredClaims, freeBytes }) => (
            <tr key={name}>
              <td>
                <a href={linkTo('claims', name ? { class: name } : {})}>{name || 'no class'}</a>
                {freeBytes !== undefined && promisedBytes + freeBytes > 0 && (
                  <div>
                    <Meter share={promisedBytes / (promisedBytes + freeBytes)} label={`Promised of class ${name}`} />
                  </div>
                )}
              </td>
              <td class="number">{formatCount(claims)}</td>
              <td class="number">{formatBytes(promisedBytes)}</td>
              <td class="number">
                {usedBytes === undefined ? (
                  <Unavailable short reason="No volume of this class is measured." />
                ) : (
                  <span title={`${pluralize(measuredClaims, 'claim')} measured`}>
                    {measuredClaims < claims ? '≥ ' : ''}
                    {formatBytes(usedBytes)}
                  </span>
                )}
              </td>
              <td class="number">
                {freeBytes === undefined ? (
                  <Unavailable short reason="The driver of this class reports no capacity." />
                ) : (
                  formatBytes(freeBytes)
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  )
}
