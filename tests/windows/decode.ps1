# Records a trace, decodes it with tracerpt, Get-WinEvent and TDH, and compares the results with those
# of this project's reader: here, if the kit has the reader, and on the host of a virtual machine.
param(
    [Parameter(Mandatory = $true)] [string] $Kit,
    [Parameter(Mandatory = $true)] [string] $Out
)
. (Join-Path $PSScriptRoot 'common.ps1')

Invoke-Stage 'decode' $Kit $Out {
    param($Stage)
    $provider = Get-Provider $Stage
    if (-not $provider) {
        Skip-Stage $Stage 'the kit names no provider'
        return
    }
    $path = Join-Path $Stage.Kit 'recipes.json'
    $recipes = $null
    if (Test-Path -LiteralPath $path) { $recipes = ConvertFrom-Json ([IO.File]::ReadAllText($path)) }
    $session = 'wdk-etw-decode'
    $trace = Join-Path $Stage.Folder 'decode.etl'
    [void] (Invoke-Checked $Stage 'start' 'logman.exe' "create trace $session -ow -o `"$trace`" -p `"{$provider}`" 0xffffffffffffffff 5 -ets")
    try {
        $known = Invoke-Traffic $Stage 'traffic' $recipes
    } finally {
        [void] (Invoke-Checked $Stage 'stop' 'logman.exe' "stop $session -ets")
    }

    [void] (Invoke-Checked $Stage 'tracerpt' 'tracerpt.exe' "`"$trace`" -o tracerpt.xml -of XML -lr -y")
    $report = New-Object Xml.XmlDocument
    $report.Load((Join-Path $Stage.Folder 'tracerpt.xml'))
    $guid = "{$provider}"
    $ours = @($report.Events.Event | Where-Object { $_.System.Provider.Guid -eq $guid })

    $events = @(Get-TraceEvents $trace $provider)
    $decoded = @($events | ForEach-Object {
        @{ id = $_.Id; level = $_.Level; task = $_.TaskDisplayName; message = $_.Message; xml = $_.ToXml() }
    })
    Write-Json (Join-Path $Stage.Folder 'winevent.json') @{ events = [object[]] $decoded }

    # The events of a restarted device are not known: all decoders must find the same number.
    $expected = $ours.Count
    if ($known) { $expected = $recipes.traffic_events } else { Add-Check $Stage 'events' 'some' $ours.Count ($ours.Count -gt 0) }
    Add-Check $Stage 'events by tracerpt' $expected $ours.Count
    Add-Check $Stage 'events by Get-WinEvent' $expected $events.Count

    # A program decodes the same file with TDH.
    $files = 'tracerpt.xml winevent.json'
    $tracer = Get-Tracer $Stage
    if ($tracer) {
        [void] (Invoke-Checked $Stage 'tdh' $tracer.Program "$($tracer.Arguments) --json --file `"$trace`" --provider $provider")
        Move-Item -Force -LiteralPath (Join-Path $Stage.Folder 'tdh.log') (Join-Path $Stage.Folder 'tdh.jsonl')
        $lines = @([IO.File]::ReadAllLines((Join-Path $Stage.Folder 'tdh.jsonl')) | Where-Object { $_.Trim() })
        Add-Check $Stage 'events by TDH' $expected $lines.Count
        $files += ' tdh.jsonl'
    }
    # If the kit has this project's reader, it decodes the same file.
    $reader = Get-KitPath $Stage 'tools/etl.exe'
    if (Test-Path -LiteralPath $reader) {
        $image = Get-KitPath $Stage "package/$($Stage.Plan.driver.sys)"
        $dump = Invoke-Checked $Stage 'etl-dump' $reader "dump --format json --image `"$image`" `"$trace`""
        Add-Check $Stage 'etl dump: events' 'some' $dump.Text.Length ($dump.Text.Length -gt 0)
        # 0: equal, 1: differences, 2: a file that cannot be read. The log lists them.
        $compared = Invoke-Program $Stage 'etl-compare' $reader "compare --image `"$image`" --provider $provider `"$trace`" $files"
        Write-Host $compared.Text
        Add-Check $Stage 'etl compare: every field is equal' 0 $compared.Code
    }
}
