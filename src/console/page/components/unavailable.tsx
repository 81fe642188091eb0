// Shows that an amount is unknown, and why. An unknown amount is never shown as zero.
export const Unavailable = ({ reason, short }: { readonly reason: string; readonly short?: boolean }) => (
  <span class="unavailable" title={reason}>
    {short ? '–' : 'unavailable'}
    <span class="sr-only"> ({reason})</span>
  </span>
)
